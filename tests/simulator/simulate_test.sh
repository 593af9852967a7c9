#!/usr/bin/env bash
# simulate_test.sh SIMULATOR SOURCE_DIR TRAINS: simulated runs as their users meet them. TRAINS: whether the simulator
# has LibTorch (ON, OFF).
set -u
simulator=$(realpath "$1")
source_dir=$(realpath "$2")
trains=$3
platforms=$source_dir/configs/platforms
ethernet=$platforms/ethernet-1g-32.xml
work=$(mktemp -d "${TMPDIR:-/tmp}/hearsay-simulate-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$1"
  head -n 25 output
}

# expect CODE DESCRIPTION PATTERN ARGUMENT…: the simulator's exit code and what it says.
expect() {
  local code=$1 description=$2 pattern=$3 actual
  shift 3
  timeout --kill-after=5 300 "$simulator" "$@" >output 2>&1 </dev/null
  actual=$?
  [ "$actual" = "$code" ] || fail "$description: exit code $actual, expected $code"
  grep -qE -- "$pattern" output || fail "$description: nothing matches '$pattern'"
}

# The value of a field of a run's summary; lists in one line.
field() { tr -d '\n ' <"$1/summary.json" | sed -E "s/.*\"$2\":(\[[^]]*\]|\"[^\"]*\"|[^,}]*).*/\1/"; }

# equal DESCRIPTION RUN RUN FIELD…: the same in both.
equal() {
  local description=$1 first=$2 second=$3 name
  shift 3
  for name in "$@"; do
    [ -n "$(field "$first" "$name")" ] && [ "$(field "$first" "$name")" = "$(field "$second" "$name")" ] ||
      fail "$description: $name is $(field "$first" "$name") and $(field "$second" "$name")"
  done
}

# without_run FILE: but for the run's name.
without_run() { sed -E 's/hearsay-[0-9a-f]{16}//' "$1"; }

# same_files DESCRIPTION RUN RUN RANKS: what the ledger and every rank wrote, byte for byte.
same_files() {
  local description=$1 first=$2 second=$3 ranks=$4 file
  [ "$(find "$first" -name 'metrics.rank*.jsonl' -size +0 | wc -l)" = "$ranks" ] ||
    fail "$description: not the metrics of $ranks ranks in $first"
  for file in "$first"/metrics.rank*.jsonl "$first/communication.csv"; do
    cmp <(without_run "$file") <(without_run "$second/$(basename "$file")") >output 2>&1 ||
      fail "$description: $(basename "$file") differs"
  done
}

# between DESCRIPTION LOW VALUE HIGH
between() {
  awk -v low="$2" -v x="$3" -v high="$4" 'BEGIN { exit !(low <= x && x <= high) }' || fail "$1: $3 is not in $2 … $4"
}

cat >exchange.yaml <<'YAML'
seed: 3
topology:  {graph: {name: ring}, weights: {name: uniform}}
exchange:  {name: eventgrad, schedule: asynchronous, mixing: {name: stale}}
trigger:   {name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 2}
simulate:
  gradients: synthetic
  values: 20000
  segments: 5
  iterations: 40
  compute_s: 0.01
  jitter: 0.3
  slow_ranks: [1]
  slow_factor: 4
YAML
cat >dense.yaml <<'YAML'
exchange: {name: allreduce}
simulate: {gradients: synthetic, values: 64000, segments: 1, iterations: 2, compute_s: 0}
YAML

# Local steps and an outer step, and what else averages or compresses: two rounds of three steps on six ranks.
cat >outer.yaml <<'YAML'
simulate: {gradients: synthetic, values: 6000, segments: 5, iterations: 6, compute_s: 0.01}
YAML
for exchange in '{name: diloco, local_steps: 3}' '{name: diloco, local_steps: 3, fragments: 2, delay_steps: 0}' \
  '{name: sparseloco, local_steps: 3}' '{name: noloco, local_steps: 3}' '{name: gasloc, local_steps: 3}' \
  '{name: gossip_outer, local_steps: 3}' '{name: gossip_outer, local_steps: 3, schedule: asynchronous}' \
  '{name: fda, threshold: 0}' '{name: sparta, density: 0.1}' '{name: powersgd, dense_iterations: 2}' '{name: demo}'; do
  for run in outer outer-again; do
    rm -rf "$run"
    expect 0 "$exchange, $run" finished outer.yaml --platform "$ethernet" -n 6 -o "$run" --set "exchange=$exchange"
  done
  equal "$exchange twice" outer outer-again replica_hash wall_time_s messages bytes_sent
  [ "$(field outer bytes_sent)" -gt 0 ] || fail "$exchange: nothing was sent"
  case $exchange in
    '{name: diloco'*) between "$exchange: two rings" $((2 * 2 * 5 * 4 * 6000)) "$(field outer payload_bytes)" \
      $((2 * 2 * 5 * 4 * 6000)) ;;
    '{name: sparta'*) between "$exchange: six rings" $((6 * 2 * 5 * 4 * 600)) "$(field outer payload_bytes)" \
      $((6 * 2 * 5 * 4 * 600)) ;;
  esac
done

expect 0 "what a user should know is said" "^warning: exchange.consensus: from 2 on" outer.yaml --platform "$ethernet" \
  -n 6 -o swings --set "exchange={name: noloco, local_steps: 3, consensus: 2}"

# Communication beside computing is no waiting: 6 steps of 10 ms are 60 ms of computing whatever goes on meanwhile, and
# what was neither computed nor waited for has taken no time.
for delay in 0 1; do
  expect 0 "delay $delay" finished outer.yaml --platform "$ethernet" -n 6 -o "late$delay" \
    --set "exchange={name: diloco, local_steps: 3, delay_steps: $delay}"
  between "delay $delay: computing" 0.059999 "$(field "late$delay" compute_s)" 0.060001
  between "delay $delay: computing and waiting" 0.99 \
    "$(awk -v c="$(field "late$delay" compute_s)" -v w="$(field "late$delay" wait_s)" \
      -v t="$(field "late$delay" wall_time_s)" 'BEGIN { print (c + w) / t }')" 1.000001
done
between "nothing is hidden" 0 "$(field late0 communicate_hidden_s)" 1e-9
between "half of the rounds is hidden" 0.4 \
  "$(awk -v h="$(field late1 communicate_hidden_s)" -v c="$(field late1 communicate_s)" 'BEGIN { print h / c }')" 0.6

# A run is its command: nothing of the machine is in it.
for run in a b; do expect 0 "asynchronous run $run" finished exchange.yaml --platform "$ethernet" -n 6 -o "$run"; done
equal "an asynchronous run twice" a b replica_hash wall_time_s messages bytes_sent wait_s
same_files "an asynchronous run twice" a b 6
expect 0 "another seed" finished exchange.yaml --platform "$ethernet" -n 6 -o c --set seed=4
[ "$(field a replica_hash)" != "$(field c replica_hash)" ] || fail "another seed gives the same run"

# Nobody waits for the straggler, which takes 40 times 40 ms; in lockstep everybody does.
between "asynchronous ranks do not wait" 0 "$(field a wait_s)" 1e-9
expect 0 "lockstep" finished exchange.yaml --platform "$ethernet" -n 6 -o d --set exchange.schedule=lockstep
[ "$(awk -v a="$(field d wait_s)" 'BEGIN { print (a > 0.5) }')" = 1 ] || fail "lockstep ranks wait for the straggler"
# Six ranks, one of which does a quarter of what others do, are as fast as 5.25.
between "the others do what the straggler does not" 0.2 \
  "$(awk -v a="$(field a wall_time_s)" -v d="$(field d wall_time_s)" 'BEGIN { print a / d }')" 0.32

# Nor for a machine behind a slow cable: asynchronously the others end as if it were not there, in lockstep none does.
even=(--set simulate.slow_ranks=[] --set simulate.jitter=0 --set simulate.iterations=20 --set simulate.values=10000)
for run in slow slow-again; do
  expect 0 "behind a slow link, $run" finished exchange.yaml --platform "$platforms/slow-link-32.xml" -n 32 -o "$run" \
    "${even[@]}"
done
equal "behind a slow link twice" slow slow-again replica_hash wall_time_s messages bytes_sent
same_files "behind a slow link twice" slow slow-again 32
between "asynchronous ranks do not wait for a slow link" 0 "$(field slow wait_s)" 1e-9
# News of the last batch crosses 16 edges, 2 ms each; what is begun meanwhile is beyond the budget.
between "their time is that of computing" 0.2 "$(field slow wall_time_s)" 0.26
expect 0 "lockstep behind a slow link" finished exchange.yaml --platform "$platforms/slow-link-32.xml" -n 32 -o \
  slow-lockstep \
  "${even[@]}" --set exchange.schedule=lockstep --set trigger.warmup_iterations=20
between "lockstep takes what two packets of 40 kB take at 1.25 MB/s" "$(awk 'BEGIN { print 19 * 2 * 40e3 / 1.25e6 }')" \
  "$(field slow-lockstep wall_time_s)" 2

# What a rank mixes with has been under way for one transfer, of two packets that share the cable, and has waited for at
# most an iteration of either end. Packets that queue carry older values.
for packets in 1 4; do
  [ "$packets" = 1 ] && mixing=arrival || mixing=stale # where the mean is kept, edges alternate
  expect 0 "$packets in flight" finished exchange.yaml --platform "$platforms/slow-link-32.xml" -n 32 \
    -o "flight-$packets" \
    --set simulate.slow_ranks=[] --set simulate.jitter=0.1 --set simulate.iterations=60 --set simulate.values=27480 \
    --set simulate.compute_s=0.02 --set exchange.mixing.name=$mixing --set 'trigger={name: always}' \
    --set exchange.in_flight="$packets"
done
# Ages are the reader's own iterations, which take 18 ms at least.
oldest=$(awk 'BEGIN { print 2 * 4 * 27480 / 1.25e6 / 0.018 + 2 }')
between "the newest values travel" 4 "$(field flight-1 staleness_max_iterations)" "$oldest"
between "a queue is older" "$oldest" "$(field flight-4 staleness_max_iterations)" 60

# One peer an iteration: a 4-byte value of everybody to one other, whatever P is.
cat >one-peer.yaml <<'YAML'
topology: {graph: {name: one_peer_exponential}, weights: {name: uniform}}
exchange: {name: dpsgd}
simulate: {gradients: synthetic, values: 1000, segments: 1, iterations: 6, compute_s: 0}
YAML
expect 0 "one peer" finished one-peer.yaml --platform "$ethernet" -n 32 -o one-peer
between "payload of one peer" $((32 * 6 * 4000)) "$(field one-peer payload_bytes)" $((32 * 6 * 4000))
between "edges of one peer" 32 "$(field one-peer edges)" 32
expect 2 "one peer and held copies" "changes from iteration to iteration" one-peer.yaml --platform "$ethernet" -n 4 -o \
  x \
  --set exchange.name=eventgrad

# Ranks that fail: silent from then on; the others find out, go on, and do the work. In the same run every time.
cat >failing.yaml <<'YAML'
seed: 3
topology:  {graph: {name: exponential}, weights: {name: uniform}}
exchange:  {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}
trigger:   {name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 2, maximum_silence: 5}
train:     {on_failure: continue, failure_timeout_s: 1}
simulate:
  gradients: synthetic
  values: 2000
  segments: 5
  iterations: 60
  compute_s: 0.1
  jitter: 0.2
  failures:
    - {rank: 0, at_s: 1.05}
    - {rank: 4, at_s: 2}
report:    {every_iterations: 2}
YAML
# lost RUN: "rank at_s iterations" of each that died; done RUN: iterations of those that lived.
lost() {
  python3 -c 'import json, sys
for r in json.load(open(sys.argv[1] + "/summary.json"))["ranks_lost"]:
    print(r["rank"], r["at_s"], r["iterations"])' "$1"
}
done_by_living() { awk -F, 'NR > 1 { sum += $2 } END { print sum }' "$1/ranks.csv"; }
for run in failing failing-again; do
  expect 0 "two ranks fail, $run" 'lost +rank 0 after' failing.yaml --platform "$ethernet" -n 8 -o "$run"
done
equal "a run in which ranks fail, twice" failing failing-again replica_hash wall_time_s messages bytes_sent ranks_lost
same_files "a run in which ranks fail, twice" failing failing-again 8
cmp <(without_run failing/ranks.csv) <(without_run failing-again/ranks.csv) || fail "ranks.csv differs"
[ "$(lost failing | cut -d' ' -f1 | xargs)" = "0 4" ] || fail "lost: $(lost failing | xargs)"
between "rank 0 is missed after the time-out" 2.0 "$(lost failing | awk '$1 == 0 { print $2 }')" 2.3
between "rank 4 is missed after the time-out" 2.95 "$(lost failing | awk '$1 == 4 { print $2 }')" 3.3
last_s=$(tail -n 1 failing/metrics.rank0000.jsonl | sed -E 's/.*"time_s":([^,]*).*/\1/')
between "nothing is heard of the dead" 0.9 "$last_s" 1.05
[ "$(grep -c . failing/ranks.csv)" = 7 ] || fail "lines of the living: $(cat failing/ranks.csv)"
between "the budget of the job is spent, and no more than what each is at" 480 \
  "$(($(done_by_living failing) + $(lost failing | awk '{ sum += $3 } END { print sum }')))" 488
# Where a rank fails when it has trained, the others begin their sums again without it.
late=$(awk -v end="$(field failing wall_time_s)" 'BEGIN { printf "%.4f", end + 0.002 }')
expect 0 "one fails at the end" 'lost +rank 3 after' failing.yaml --platform "$ethernet" -n 8 -o late \
  --set "simulate.failures=[{rank: 0, at_s: 1.05}, {rank: 4, at_s: 2}, {rank: 3, at_s: $late}]"
[ "$(grep -c . late/ranks.csv)" = 6 ] || fail "lines of those that live to the end: $(cat late/ranks.csv)"
expect 0 "nobody fails" finished failing.yaml --platform "$ethernet" -n 8 -o living --set 'simulate.failures=[]'
[ "$(field living ranks_lost)" = "[]" ] || fail "nobody is lost: $(field living ranks_lost)"
# Ten and twenty iterations of 60 are done; the other six ranks do what is left.
between "six do the work of eight" 7.2 "$(field failing wall_time_s)" 7.8
expect 0 "on a ring" 'in 2 parts' failing.yaml --platform "$ethernet" -n 8 -o ring --set topology.graph.name=ring
for exchange in '{name: dpsgd, schedule: asynchronous}' \
  '{name: gossip_outer, schedule: asynchronous, local_steps: 5}'; do
  for run in other other-again; do
    rm -rf "$run"
    expect 0 "$exchange" 'lost +rank 4 after' failing.yaml --platform "$ethernet" -n 8 -o "$run" \
      --set "exchange=$exchange"
  done
  equal "$exchange twice" other other-again replica_hash wall_time_s messages bytes_sent ranks_lost
done
storm=(--set 'simulate.failures=[]' --set simulate.storm.failures_per_hour=3600)
for run in storm storm-again; do
  expect 0 "a storm, $run" 'lost +rank' failing.yaml --platform "$ethernet" -n 8 -o "$run" "${storm[@]}"
done
equal "a storm twice" storm storm-again replica_hash ranks_lost wall_time_s
expect 0 "another storm" 'lost +rank' failing.yaml --platform "$ethernet" -n 8 -o storm-2 "${storm[@]}" \
  --set simulate.storm.seed=2
[ "$(field storm ranks_lost)" != "$(field storm-2 ranks_lost)" ] || fail "another seed gives the same storm"
between "no more die than die in the time" 3 "$(lost storm | wc -l)" 7
# They come back: a spare that is there from an instant on takes the place, and trains with a neighbour's model.
# joined RUN: "rank process at_s iterations" of each that came.
joined() {
  python3 -c 'import json, sys
for r in json.load(open(sys.argv[1] + "/summary.json"))["ranks_joined"]:
    print(r["rank"], r["process"], r["at_s"], r["iterations"])' "$1"
}
back='[{rank: 4, at_s: 2, back_at_s: 3.5}, {rank: 0, at_s: 1.05, back_at_s: 3}, {rank: 0, at_s: 4, back_at_s: 5.2}]'
for run in back back-again; do
  expect 0 "they come back, $run" 'joined +process 8 in the place of rank 0' failing.yaml --platform "$ethernet" -n 11 \
    -o "$run" --set train.spares=3 --set "simulate.failures=$back"
done
equal "they come back, twice" back back-again replica_hash wall_time_s messages bytes_sent ranks_lost ranks_joined
[ "$(joined back | cut -d' ' -f1,2 | xargs)" = "0 8 4 9 0 10" ] || fail "who came: $(joined back | xargs)"
[ "$(field back ranks)" = 8 ] || fail "spares are counted as ranks"
between "nobody is back before its time" 3 "$(joined back | awk '$2 == 8 { print $3 }')" 3.3
between "nobody is back before its time" 3.5 "$(joined back | awk '$2 == 9 { print $3 }')" 3.8
between "a place is empty until it is known" 5.2 "$(joined back | awk '$2 == 10 { print $3 }')" 5.5
between "who is back trains" 20 "$(joined back | awk '$2 == 9 { print $4 }')" 40
[ "$(grep -c . back/ranks.csv)" = 9 ] || fail "lines of those that live in the end: $(cat back/ranks.csv)"
between "the budget is spent by those who lived" 480 \
  "$(($(done_by_living back) + $(lost back | awk '{ sum += $3 } END { print sum }')))" 491
between "eight are faster than six" 6.2 "$(field back wall_time_s)" "$(field failing wall_time_s)"
storm_back=("${storm[@]}" --set train.spares=4 --set simulate.storm.back_after_s=1.5)
for run in storm-back storm-back-again; do
  expect 0 "a storm with returns, $run" 'joined +process' failing.yaml --platform "$ethernet" -n 12 -o "$run" \
    "${storm_back[@]}"
done
equal "a storm with returns, twice" storm-back storm-back-again replica_hash ranks_lost ranks_joined wall_time_s
first_lost() { lost "$1" | head -1 | cut -d' ' -f1; }
[ "$(first_lost storm)" = "$(first_lost storm-back)" ] || fail "who comes back later changes the storm before"
# Nobody fails: spares change nothing, and leave.
expect 0 "spares that nobody needs" finished failing.yaml --platform "$ethernet" -n 10 -o unneeded \
  --set 'simulate.failures=[]' --set train.spares=2
[ "$(field unneeded ranks_joined)" = "[]" ] || fail "nobody is needed: $(field unneeded ranks_joined)"
between "spares do not slow the others" 5.5 "$(field unneeded wall_time_s)" \
  "$(awk -v of="$(field living wall_time_s)" 'BEGIN { print of + 0.2 }')"
refused() { expect 2 "$1" "$2" failing.yaml --platform "$ethernet" -n 8 -o no "${@:3}"; }
refused "no such rank" 'failures\[0\].rank: must be in \[0, 7\], got 8' --set 'simulate.failures=[{rank: 8, at_s: 1}]'
refused "which rank" 'say which rank fails' --set 'simulate.failures=[{at_s: 1}]'
refused "before it began" 'at_s: must be >= 0, got -1' --set 'simulate.failures=[{rank: 1, at_s: -1}]'
refused "twice" 'this rank fails twice' --set 'simulate.failures=[{rank: 1, at_s: 1}, {rank: 1, at_s: 2}]'
refused "again before it is back" 'fails again before it is back' --set train.spares=2 \
  --set 'simulate.failures=[{rank: 1, at_s: 1, back_at_s: 3}, {rank: 1, at_s: 2}]'
refused "back before it failed" 'comes back after it has failed' --set train.spares=1 \
  --set 'simulate.failures=[{rank: 1, at_s: 1, back_at_s: 1}]'
refused "nobody is there to come" 'set train.spares: 1 or more' \
  --set 'simulate.failures=[{rank: 1, at_s: 1, back_at_s: 2}]'
refused "nobody is there to come in a storm" 'set train.spares: 1 or more' \
  --set 'simulate.failures=[]' --set simulate.storm.failures_per_hour=60 --set simulate.storm.back_after_s=2
refused "a spare fails" 'rank 7 fails, and there are ranks 0 to 6' --set train.spares=1 \
  --set 'simulate.failures=[{rank: 7, at_s: 1}]'
refused "nobody trains" '8 of 8 processes would wait' --set train.spares=8 --set 'simulate.failures=[]'
refused "all are away at one time" 'one rank at least must live at any time' --set train.spares=7 \
  --set "simulate.failures=[{rank: 0, at_s: 1, back_at_s: 2}]"
refused "both" 'either failures or a storm' --set simulate.storm.failures_per_hour=1
refused "a storm that mends" 'failures_per_hour: must be >= 0' --set simulate.storm.failures_per_hour=-1
refused "nobody lives" 'one rank at least must live' \
  --set "simulate.failures=[$(for r in 0 1 2 3 4 5 6 7; do printf '{rank: %s, at_s: 1},' $r; done)]"
refused "lockstep" 'continue needs ranks that wait for nobody' --set exchange.schedule=lockstep
refused "nobody goes on" 'set train.on_failure: continue' --set train.on_failure=abort
refused "a sum of all" 'continue needs ranks that wait for nobody' --set 'exchange={name: allreduce}'

# A ring all-reduce takes what the α-β model says: 2 (P − 1) (α + m / P · β), headers excepted.
expect 0 "dense ring" finished dense.yaml --platform "$ethernet" -n 8 -o e
predicted=$(awk 'BEGIN { print 14 * (0.436e-3 + 8000 * 3.6e-8) }')
between "time of a ring" "$predicted" "$(field e time_per_iteration_s)" \
  "$(awk -v t="$predicted" 'BEGIN { print 1.01 * t }')"
# A tenth of the values at a tenth of the bandwidth takes as long.
expect 0 "scaled" finished dense.yaml --platform "$ethernet" -n 8 -o f --set simulate.values=6400 --set \
  simulate.scale=10
between "scaled time" "$predicted" "$(field f time_per_iteration_s)" \
  "$(awk -v t="$predicted" 'BEGIN { print 1.02 * t }')"

# A thousand ranks, in seconds of real time.
expect 0 "1024 ranks" finished exchange.yaml --platform "$platforms/ethernet-10g-1024.xml" -n 1024 -o many \
  --set exchange.schedule=lockstep --set simulate.values=100 --set simulate.iterations=2

# What cannot be is said in one sentence.
expect 2 "too few hosts" 'has 32 hosts, which is too few for 33 ranks' dense.yaml --platform "$ethernet" -n 33 -o g
expect 2 "no such platform" 'no such file' dense.yaml --platform missing.xml -n 2 -o g
printf 'hosts: 4\n' >not.xml
expect 2 "no platform" 'not a platform of SimGrid' dense.yaml --platform not.xml -n 2 -o g
sed 's/"Floyd"/"Flood"/' "$platforms/slow-link-32.xml" >not.xml  # SimGrid aborts
expect 2 "no routing" 'not a platform of SimGrid \(Not a valid model' dense.yaml --platform not.xml -n 2 -o g
sed 's/bw="[^"]*"/bw="-1"/' "$ethernet" >not.xml
expect 2 "no bandwidth" 'link .* has a bandwidth of -1' dense.yaml --platform not.xml -n 2 -o g
expect 2 "unknown key" 'compute_ms' dense.yaml --platform "$ethernet" -n 2 -o g --set simulate.compute_ms=3
expect 2 "a run that is there" 'already holds a run' dense.yaml --platform "$ethernet" -n 8 -o e
for platform in "$platforms"/*.xml; do
  expect 0 "$(basename "$platform")" finished dense.yaml --platform "$platform" -n 4 -o platform --overwrite
done

if [ "$trains" = ON ]; then
  train=(--set 'data.batch_size=8' --set train.iterations=12 --compute-s 0.01)
  for run in h i; do
    expect 0 "asynchronous training $run" finished "$source_dir/configs/simulate/straggler.yaml" \
      --platform "$ethernet" -n 9 -o "$run" "${train[@]}"
  done
  equal "asynchronous training twice" h i replica_hash wall_time_s messages accuracy_mean_model
  same_files "asynchronous training twice" h i 9
  # All gradients are ready when computing is over: sums that are begun in the backward pass are waited for.
  cat >buckets.yaml <<'YAML'
model:    {name: mlp, hidden: [64, 64]}
data:     {name: synthetic_digits, batch_size: 8, train_size: 384, test_size: 32}
train:    {iterations: 12, evaluate_every_epochs: 0}
simulate: {compute_s: 0.01}
YAML
  for overlap in true false; do
    expect 0 "overlap: $overlap" finished buckets.yaml --platform "$ethernet" -n 4 -o "buckets-$overlap" \
      --set "exchange={name: allreduce, overlap: $overlap, bucket_bytes: 4096}"
    between "overlap: $overlap, computing" 0.119999 "$(field "buckets-$overlap" compute_s)" 0.120001
  done
  equal "overlap changes nothing" buckets-true buckets-false replica_hash wall_time_s wait_s communicate_s
  between "they take time" 0.01 "$(field buckets-true wait_s)" 1
  # Ranks that fail while a model is trained, one of them as it is about to end.
  for run in failing-h failing-i; do
    expect 0 "training without two ranks, $run" 'lost +rank 0 after' "$source_dir/configs/simulate/straggler.yaml" \
      --platform "$ethernet" -n 9 -o "$run" "${train[@]}" --set exchange.mixing.name=arrival \
      --set train.iterations=150 \
      --set train.on_failure=continue --set train.failure_timeout_s=0.5 --set 'simulate.slow_ranks=[]' \
      --set 'simulate.failures=[{rank: 0, at_s: 0.3}, {rank: 7, at_s: 1.7}]'
  done
  equal "training without two ranks, twice" failing-h failing-i replica_hash wall_time_s messages accuracy_mean_model \
    ranks_lost
  same_files "training without two ranks, twice" failing-h failing-i 9
  [ "$(lost failing-h | cut -d' ' -f1 | xargs)" = "0 7" ] || fail "lost: $(lost failing-h | xargs)"
  refused "training that ends with the dead" 'set train.on_failure: continue' --set simulate.gradients=model \
    --set train.on_failure=abort --set model.name=mlp --set data.name=synthetic_digits
  # Evaluations in between must not keep a rank from sending what others wait for.
  sed 's/"0-30"/"0-2"/; s/"31-31"/"3-3"/' "$platforms/slow-link-32.xml" >slow-link-4.xml
  expect 0 "lockstep training behind a slow link" finished "$source_dir/configs/simulate/slow-link.yaml" \
    --platform slow-link-4.xml -n 4 -o k --set exchange.schedule=lockstep --set topology.graph.name=ring \
    --set data.train_size=64 --set data.test_size=32 --set train.epochs=4
else
  expect 2 "no LibTorch" 'built without LibTorch' "$source_dir/configs/simulate/straggler.yaml" \
    --platform "$ethernet" -n 2 -o j
  echo "skipped: simulated training: this build has no LibTorch"
fi

[ "$failures" = 0 ] && echo "all simulated runs are as they should be"
[ "$failures" = 0 ]

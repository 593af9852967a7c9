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
  [ "$packets" = 1 ] && mixing=arrival || mixing=stale # where the mean is kept, the ends take turns
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

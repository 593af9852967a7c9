#!/usr/bin/env bash
# training_test.sh HEARSAY SOURCE_DIR: trainings as their users meet them, and what looks at their runs.
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/small.sh"

# ---------------------------------------------------------------- training
expect 0 "train alone" "1 rank, 32 iterations: finished" "accuracy of the averaged model +[0-9.]+ %" \
  "run folder +runs/small" "averaged model +runs/small/model.pt" -- "${train[@]}"
for file in manifest.json config.yaml metrics.rank0000.jsonl summary.json communication.csv segments.csv staleness.csv \
  model.pt; do
  holds "the run wrote $file" test -s "runs/small/$file"
done
holds "progress off is silent" test ! -s stderr
expect 2 "an existing run" "runs/small already holds a run.*--overwrite" "!MPI_ABORT" -- "${train[@]}"
cp -r runs/small before
expect 0 "the run's own configuration, again" "finished" -- \
  "$hearsay" train runs/small/config.yaml --progress off --overwrite
grep replica_hash -A1 runs/small/summary.json >hash-after
grep replica_hash -A1 before/summary.json >hash-before
holds "equal configuration, equal replica" cmp hash-before hash-after
expect 3 "a folder that cannot be made" "/proc/hearsay.*--output" -- "${train[@]}" --output /proc/hearsay
expect 0 "progress in lines" "iter 32/32 · epoch 2/2 · loss [0-9.]+ · sent .* it/s · left " "evaluation at iter" -- \
  "$hearsay" train small.yaml --progress lines --output runs/lines
expect 5 "diverged" "^hearsay: .*diverged at iteration [0-9]+" "last finite loss|no finite loss" "learning_rate" -- \
  "${train[@]}" --set optimizer.learning_rate=1e20 --output runs/diverged
holds "its summary says so" grep -q '"status": "diverged"' runs/diverged/summary.json
expect 5 "diverged in a job" "^hearsay: \[rank [01]\] .*diverged at iteration" -- \
  "${two_ranks[@]}" "${train[@]}" --set optimizer.learning_rate=1e20 --output runs/diverged-2
# Parameters that are numbers, and a loss that is none: the last iteration's, and one on the way.
huge=("${train[@]}" --set optimizer.learning_rate=1e30)
none="averaged model diverged at iteration 1: its loss on the test set is (not a number|infinite); lower optimizer"
expect 5 "an averaged model without a loss" "^hearsay: the $none" "!finished" -- \
  "${huge[@]}" --set train.iterations=1 --output runs/no-loss
holds "its summary says so" grep -q '"status": "diverged"' runs/no-loss/summary.json
expect 5 "the same in a job" "^hearsay: \[rank [01]\] the $none" "!finished" -- \
  "${two_ranks[@]}" "${huge[@]}" --set train.iterations=1 --output runs/no-loss-2
expect 5 "the same at an evaluation" "^hearsay: the $none" -- \
  "${huge[@]}" --set data.batch_size=256 --output runs/no-loss-3

expect 0 "no model is saved that is not wanted" "!averaged model +runs" -- \
  "${train[@]}" --set report.save_model=false --output runs/unsaved
holds "none is there" test ! -e runs/unsaved/model.pt
expect 3 "nor can it be evaluated" "model.pt: cannot be read: No such file.*report.save_model" "!as many" -- \
  "$hearsay" evaluate runs/unsaved
expect 3 "nor be started from" "runs/none.pt: cannot be read: No such file" "!as many" -- \
  "${train[@]}" --set train.initial_model=runs/none.pt --output runs/from-none
expect 0 "asynchronous, evaluated on the way" "evaluation at iter 16 · epoch 1 " "evaluation at iter 3[2-9] " -- \
  "$hearsay" train small.yaml --set exchange.schedule=asynchronous --output runs/asynchronous
holds "models that were left on the way are gone" test ! -e runs/asynchronous/snapshots.rank0000.bin
expect 0 "asynchronous, evaluated at its end only" "!evaluation at iter 16 " -- "$hearsay" train small.yaml \
  --output runs/asynchronous-2 --set exchange.schedule=asynchronous --set train.evaluate_every_epochs=0
expect 0 "seconds end a run" "finished" "!32 iterations" -- "$hearsay" train small.yaml --output runs/seconds \
  --set train.epochs=100000 --set train.seconds=1
expect 2 "a budget of the job needs ranks that do not wait" "schedule: asynchronous" -- \
  "$hearsay" train small.yaml --set train.budget=job
expect 0 "train on two ranks" "age of mixed copies, iterations +mean [0-9.]+, at most [0-9]+" \
  "2 ranks, 16 iterations: finished" "messages +[0-9,]+ \([0-9.]+ % of D-PSGD's\)" -- \
  "${two_ranks[@]}" "${train[@]}" --output runs/event
expect 0 "the baseline on two ranks" "messages +128 \(100.0 % of D-PSGD's\)" -- \
  "${two_ranks[@]}" "$hearsay" train dpsgd.yaml --progress off --output runs/dpsgd
for rank in 0000 0001; do holds "rank $rank wrote its metrics" test -s "runs/dpsgd/metrics.rank$rank.jsonl"; done

# ---------------------------------------------------------------- the global path
three_ranks=("$mpiexec" "${mpiexec_args[@]}" -n 3)
sed -e '/^trigger/d; /^topology/d' -e 's/^exchange.*/exchange: {name: allreduce}/' small.yaml >sum.yaml
sum=("$hearsay" train sum.yaml --progress off --set)
expect 2 "nodes of unequal size" "^hearsay: exchange.node_size: nodes of 2 ranks cannot be made of 3 ranks" \
  "!MPI_ABORT" -- \
  "${three_ranks[@]}" "${sum[@]}" 'exchange={name: hitopk, node_size: 2}' --output runs/unequal
holds "no run was begun" test ! -e runs/unequal

# ---------------------------------------------------------------- signals
long=("${train[@]}" --set train.epochs=100000 --output)
stops() { # stops SIGNAL CODE FOLDER COMMAND…
  local signal=$1 code=$2 folder=$3 actual pid
  shift 3
  checks=$((checks + 1))
  "$@" >stopped.log 2>&1 </dev/null &
  pid=$!
  for _ in $(seq 300); do
    [ -s "$folder/metrics.rank0000.jsonl" ] && break
    sleep 0.1
  done
  kill -s "$signal" "$pid"
  (sleep 60 && kill -KILL "$pid") 2>/dev/null &
  local guard=$!
  wait "$pid" 2>/dev/null
  actual=$?
  kill "$guard" 2>/dev/null
  [ "$actual" = "$code" ] || fail "SIG$signal: exit code $actual, expected $code"
  grep -q '"status": "stopped"' "$folder/summary.json" || fail "SIG$signal: the summary does not say that it stopped"
}
stops TERM 143 runs/stopped "${long[@]}" runs/stopped
holds "the message names the signal" grep -q "hearsay: stopped by signal 15" stopped.log
# The terminal is gone, or a cluster says that time is nearly up.
for signal in HUP:129 USR1:138 USR2:140 XCPU:152; do
  stops "${signal%:*}" "${signal#*:}" "runs/${signal%:*}" "${long[@]}" "runs/${signal%:*}"
  holds "$signal: a checkpoint" test -s "runs/${signal%:*}/checkpoints/checkpoint-000001/rank0000.json"
done
for signal in USR1 XCPU; do # the launcher hands both on as the first
  stops $signal 138 runs/launched-$signal "$source_dir/scripts/launch" -n 2 "${long[@]}" runs/launched-$signal
  holds "$signal to scripts/launch: a checkpoint of both ranks" \
    test -s runs/launched-$signal/checkpoints/checkpoint-000001/rank0001.json
done

# ---------------------------------------------------------------- compare
expect 0 "compare" "^run +accuracy +worst +consensus +messages +% of +bytes +% of +time per" \
  "^dpsgd +[0-9.]+ % +[0-9.]+ % +[0-9.e-]+ +128 +100.0 +[0-9.]+ .B +100.0 +[0-9.]+ (µs|ms|s)" "^event +" "!note" -- \
  "$hearsay" compare runs/dpsgd runs/event/
holds "at most 100 columns" test "$(wc -L <stdout)" -le 100
expect 0 "compare what should not be" "^note: small is another experiment.*ranks 1 \(baseline: 2\)" \
  "^note: diverged diverged after 0 iterations|^note: diverged diverged after [0-9]+ iteration" \
  "^note: stopped stopped" \
  "^diverged +– +– +–" -- "$hearsay" compare runs/dpsgd runs/small runs/diverged runs/stopped
expect 0 "compare as JSON" '"baseline": "dpsgd"' '"messages_of_baseline": 1.0' '"status": "finished"' \
  '"notes": \[\]' -- \
  "$hearsay" compare runs/dpsgd runs/event --json
expect 3 "compare with no run" "none: no summary.json: not a run folder" -- \
  "$hearsay" compare runs/dpsgd none
rm before/summary.json
expect 3 "compare with a run that goes on" "before: no summary.json: the run is still going on" -- \
  "$hearsay" compare before
expect 2 "compare nothing" "^hearsay: RUN" -- "$hearsay" compare

# ---------------------------------------------------------------- watch
expect 0 "watch a finished run" "^event: eventgrad, mlp on synthetic_digits, 2 ranks, finished, accuracy [0-9.]+ %" \
  "^rank +iteration +epoch +it/s +loss +messages +sent +stale +heard" "heard: " "^1 +16/16 +2.00 " \
  "^loss of rank 0 .*▁.* [0-9.]+$" \
  "^edges .*0→1 [0-9.]+ .?B/s" -- "$hearsay" watch runs/event
expect 3 "watch nothing" "none: no manifest.json: not a run folder" -- "$hearsay" watch none
expect 2 "watch too often" "--every 0: must be 0.1" -- "$hearsay" watch runs/event --every 0
expect 0 "watch a run that goes on" "running|diverged" -- "$hearsay" watch --once before
touch -d "10 minutes ago" before/*
expect 0 "watch a run that was killed" "no news for 10 min .*probably dead" -- "$hearsay" watch --once before
mkdir fifo
mkfifo fifo/manifest.json
expect 3 "watch a FIFO" "manifest.json: is a FIFO, a file was expected" -- "$hearsay" watch fifo
rm fifo/manifest.json
cp before/manifest.json fifo
mkfifo fifo/metrics.rank0000.jsonl
expect 3 "watch another" "metrics.rank0000.jsonl: is a FIFO, a file was expected" -- "$hearsay" watch fifo
rm fifo/metrics.rank0000.jsonl
cp before/metrics.rank0000.jsonl fifo/metrics.rank99999999.jsonl
sed -E 's/"ranks": [0-9]+/"ranks": 900000000/' before/manifest.json >fifo/manifest.json
expect 3 "a manifest of a job that cannot be" "does not have 900000000 ranks" -- "$hearsay" watch fifo
sed -i -E 's/("run_id": ")[^"]*/\1hearsay-0123456789abcdef/' fifo/manifest.json
expect 0 "only files that are there are read" "was killed" -- "$hearsay" close fifo

# ---------------------------------------------------------------- bench
expect 0 "bench alone lists what there is" "^collectives  ." "hearsay bench NAME --help" -- "$hearsay" bench
expect 0 "help of a bench" "--density .*0.001,0.01" "Examples:" -- "$hearsay" bench collectives --help
expect 2 "unknown bench" \
  "^hearsay: unknown bench 'colectives'; known: collectives, exchanges, training" "did you mean 'collectives'" -- \
  "$hearsay" bench colectives
bench=("$hearsay" bench collectives)
expect 2 "bench with one rank" "^hearsay: bench collectives .*at least two.*mpirun" -- "${bench[@]}"
expect 2 "bench at density 0" "^hearsay: --density 0: .*\(0, 1\]" -- "${bench[@]}" --density 0.1,0
expect 2 "bench above density 1" "^hearsay: --density 1.5: .*\(0, 1\]" -- "${bench[@]}" --density 1.5
expect 2 "bench of no values" "^hearsay: --values 0: .*whole number" -- "${bench[@]}" --values 0
expect 2 "bench of half a value" "^hearsay: --values 1.5: .*whole number" -- "${bench[@]}" --values 1e3,1.5
expect 2 "bench with no calls" "^hearsay: --calls 0: at least 1" -- "${bench[@]}" --calls 0
expect 2 "bench for less than no time" "^hearsay: --seconds -1: .*0 or more" -- "${bench[@]}" --seconds -1
expect 2 "bench with an unknown option" "^hearsay: .*--fast.*hearsay bench" -- "${bench[@]}" --fast
expect 2 "said once in a job" "^hearsay: --density 0" -- "${two_ranks[@]}" "${bench[@]}" --density 0
holds "one message, not two" test "$(grep -c '^hearsay: ' output)" = 1
tiny=("${two_ranks[@]}" "${bench[@]}" --values 1000,7 --density 0.01,1 --calls 3)
number='[0-9.]+ (µs|ms|s)'
expect 0 "bench of two ranks" "^bench collectives: 20 steps, at most about 40.0 s" \
  "^2 ranks on 1 machine" "^α  $number a message, β  .* ns a word" "^1,000 values$" "^7 values$" \
  "^library +dense +3 +$number +$number +$number +[0-9.]+ +4.00 kB$" \
  "^ring +dense +3 +$number +$number +$number +[0-9.]+ +4.00 kB$" \
  "^topk +0.01 +10 +3 +$number .* 112 B$" "^gtopk_naive +0.01 +10 +3 .* 112 B$" "^gtopk_tree +0.01 +10 +3 .* 88 B$" \
  "^gtopk_butterfly +1 +1,000 +3 " "^merge .* $number \(target: at most 1.00 ms\)" "times r \+= g alone" -- "${tiny[@]}"
holds "at most 100 columns" test "$(wc -L <stdout)" -le 100
expect 0 "bench as JSON" '"algorithm": "gtopk_butterfly"' '"alpha_s": [0-9]' '"target_ratio": 1.5' -- \
  "${tiny[@]}" --json
holds "it is JSON" python3 -c 'import json, sys; assert len(json.load(open("stdout"))["collectives"]) == 20'
expect 0 "bench of three ranks" "^3 ranks" "^gtopk_butterfly +0.3 +15 +2 " -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 3 "${bench[@]}" --values 50 --density 0.3 --calls 2

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 60 ]

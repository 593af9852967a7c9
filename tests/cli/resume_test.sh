#!/usr/bin/env bash
# resume_test.sh HEARSAY SOURCE_DIR: runs that are killed, stopped and resumed, and what they leave; the laws over all
# algorithms are in tests/runtime/state/resume_test.cpp.
source "$(dirname "$0")/expect.sh"

three_ranks=("$mpiexec" "${mpiexec_args[@]}" -n 3)
cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [128]}
data: {name: synthetic_digits, train_size: 1536, test_size: 64, batch_size: 8}
train: {epochs: 12, evaluate_every_epochs: 3}
report: {every_iterations: 7}
YAML

# records FOLDER: what the metrics say, but for times, and for what another thread had sent by then, one file after the
# other.
records() {
  python3 - "$1" <<'PY'
import glob, json, sys
for name in sorted(glob.glob(sys.argv[1] + "/metrics.rank*.jsonl")):
    for line in open(name):
        record = json.loads(line)
        print({k: record.get(k) for k in ("record", "rank", "iteration", "epoch", "loss", "learning_rate", "events",
                                          "loss_mean_model", "accuracy_mean_model")})
PY
}

# begin FOLDER COMMAND…: starts a job in the background; goes on when it has written a checkpoint.
begin() {
  local folder=$1
  shift
  "$@" >begun.log 2>&1 </dev/null &
  job=$!
  for _ in $(seq 600); do
    kill -0 "$job" 2>/dev/null || break
    compgen -G "$folder/checkpoints/checkpoint-*/rank0002.json" >begun.found && break
    sleep 0.05
  done
}

same_end() { # same_end NAME WHOLE RESUMED
  holds "$1: the replicas of the run that was not stopped" \
    test "$(value "$2/summary.json" replica_hash)" = "$(value "$3/summary.json" replica_hash)"
  records "$2" >records.whole
  records "$3" >records.resumed
  holds "$1: metrics without gap or repetition" diff records.whole records.resumed
  for count in events messages payload_bytes; do
    holds "$1: as many $count" test "$(value "$2/summary.json" $count)" = "$(value "$3/summary.json" $count)"
  done
}

settings=(
  "{name: eventgrad, mixing: {name: difference, gamma: 0.4}, delay: 1}|{name: adam, learning_rate: 0.002}"
  "{name: lkgs}|{name: sgd, momentum: 0.9, learning_rate: 0.02, schedule: {name: cosine}}|{name: mnist_cnn}"
  "{name: dpsgd, correction: {name: drift}}|{name: adamw, amsgrad: true, learning_rate: 0.002}"
  "{name: gtopk}|{name: adagrad}"
)
# ---------------------------------------------------------------- killed and stopped
for i in "${!settings[@]}"; do
  IFS='|' read -r exchange optimizer model <<<"${settings[$i]}"
  train=("${three_ranks[@]}" "$hearsay" train base.yaml --progress off --set "exchange=$exchange")
  train+=(--set "optimizer=$optimizer")
  # One with dropout, whose draws go on, too.
  if [ -n "$model" ]; then train+=(--set "model=$model" --set train.epochs=3 --set train.evaluate_every_epochs=1); fi
  expect 0 "$exchange, whole" -- "${train[@]}" --output "runs/whole-$i"
  folder=runs/resumed-$i
  # A checkpoint costs time here: the run is still going on when it is killed.
  begin "$folder" "${train[@]}" --set train.checkpoint.every_iterations=40 --output "$folder"
  victim=$(pgrep -f "^$hearsay .*--output $folder\$" | tail -n 1)
  if [ -n "$victim" ]; then kill -KILL "$victim"; fi
  wait "$job" 2>/dev/null
  holds "$exchange: killed on its way" \
    test "$(value "$folder/summary.json" status 2>/dev/null || echo none)" != finished
  expect 0 "$exchange, resumed" "goes on from checkpoint [0-9]+, iteration [0-9]+" -- \
    "${three_ranks[@]}" "$hearsay" train --resume "$folder" --progress lines
  same_end "$exchange" "runs/whole-$i" "$folder"
done

train=("${three_ranks[@]}" "$hearsay" train base.yaml --progress off)
# Slow enough that it has not ended when the signal comes.
slow=(--set "model={name: mlp, hidden: [1024, 512]}")
expect 0 "whole" -- "${train[@]}" "${slow[@]}" --output runs/whole
begin runs/stopped "${train[@]}" "${slow[@]}" --set train.checkpoint.every_s=0.5 --output runs/stopped
kill -TERM "$job"
wait "$job" 2>/dev/null
cp begun.log output
holds "stopped in order" grep -q '"status": "stopped"' runs/stopped/summary.json
newest=$(printf '%s\n' runs/stopped/checkpoints/* | tail -n 1)
expect 0 "resumed after a signal" "iteration $(value "$newest/rank0000.json" iteration)" -- \
  "${three_ranks[@]}" "$hearsay" train --resume runs/stopped --progress lines
same_end "after a signal" runs/whole runs/stopped
holds "the summary says where" test "$(value runs/stopped/summary.json resumed_at_iterations)" != "[]"
holds "old checkpoints go" test "$(find runs/stopped/checkpoints -name rank0000.json | wc -l)" -le 2

# ---------------------------------------------------------------- asynchronous; another number of ranks; longer
asynchronous='exchange={name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}'
begin runs/alone "${train[@]}" --set "$asynchronous" --set train.checkpoint.every_iterations=60 --output runs/alone
kill -TERM "$job"
wait "$job" 2>/dev/null
mkdir runs/alone/checkpoints/checkpoint-900000000 # somebody's, empty
expect 0 "asynchronous, resumed" "goes on from checkpoint" finished -- \
  "${three_ranks[@]}" "$hearsay" train --resume runs/alone --progress lines
expect 0 "on fewer ranks, and longer" "is of 3 ranks, and there are 2: all ranks start from the mean" -- \
  "${two_ranks[@]}" "$hearsay" train --resume runs/alone --progress lines --set train.epochs=14
expect 0 "on more ranks" "is of 3 ranks, and there are 4" residuals -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 4 "$hearsay" train --resume runs/resumed-3 --progress lines --set train.epochs=14

# ---------------------------------------------------------------- damaged, refused
newest=$(printf '%s\n' runs/resumed-1/checkpoints/* | tail -n 1)
printf 'x' | dd of="$newest/rank0001.state" bs=1 seek=3000 conv=notrunc status=none
cp -r runs/resumed-1 runs/damaged
damaged=${newest##*-}
expect 0 "a damaged checkpoint is passed over" "goes on from checkpoint $((10#$damaged - 1)), " -- \
  "${three_ranks[@]}" "$hearsay" train --resume runs/damaged --progress lines
rm -r runs/damaged/checkpoints
expect 3 "no checkpoint" "checkpoints: there is no checkpoint.*begun anew with --overwrite" -- \
  "${three_ranks[@]}" "$hearsay" train --resume runs/damaged --progress off
mkdir outside
ln -s ../../outside runs/damaged/checkpoints
expect 2 "no link is followed" "runs/damaged/checkpoints: is a link" -- \
  "$hearsay" train base.yaml --progress off --output runs/damaged --overwrite
expect 2 "nor to go on" "runs/damaged/checkpoints: is a link" -- "$hearsay" train --progress off --resume runs/damaged
holds "nothing is written there" test -z "$(ls outside)"
mkdir empty
expect 2 "no run" "empty: there is no config.yaml" -- "$hearsay" train --resume empty
expect 2 "two of them" "CONFIG" "--resume" -- "$hearsay" train base.yaml --resume runs/whole
expect 2 "none of them" "no CONFIG" -- "$hearsay" train
expect 2 "another configuration" "seed=4: a run that is resumed keeps its configuration" -- \
  "$hearsay" train --resume runs/whole --set seed=4
expect 2 "by time and by iterations" "either by time or by iterations" -- "$hearsay" train base.yaml \
  --set 'train.checkpoint={every_s: 1, every_iterations: 5}'
expect 2 "a run is there" "go on with it with --resume" -- "${train[@]}" --output runs/whole
expect 0 "an overwritten run takes its checkpoints along" -- "$hearsay" train base.yaml --progress off --overwrite \
  --set train.epochs=1 --output runs/stopped
holds "nothing of them is left" test ! -e runs/stopped/checkpoints

# ---------------------------------------------------------------- where nothing can be written
touch file
expect 3 "no room for checkpoints" "could not be written: .*training goes on" "not all of its files" "finished" -- \
  "$hearsay" train base.yaml --progress off --set train.epochs=1 --output runs/nowhere \
  --set 'train.checkpoint={every_iterations: 50, directory: file}'
# A disk that is full from now on: no file grows beyond 100 kB.
(trap '' XFSZ && exec timeout 120 "$hearsay" train base.yaml --progress off --set train.checkpoint.every_iterations=10 \
  --set report.save_model=false --set report.every_iterations=50 --output runs/full) >stdout 2>stderr &
job=$!
for _ in $(seq 600); do
  [ -e runs/full/metrics.rank0000.jsonl ] && break
  sleep 0.05
done
prlimit --fsize=100000 --pid "$(sed -n 's/^process //p' runs/full/run.lock)"
wait "$job"
code=$?
cat stdout stderr >output
holds "a full disk: $code" test "$code" = 3
holds "it is told once while it trains" test "$(grep -c 'warning: a checkpoint could not be written' stderr)" = 1
holds "and once at the end, with a count" \
  python3 -c "
import json, re
told = json.load(open('runs/full/summary.json'))['not_written']
assert len(told) == 1 and re.search(r'a checkpoint: .*File too large.*, and [0-9]+ more like it', told[0]), told"
holds "no empty folder stays" test -z "$(find runs/full -type d -empty)"

# ---------------------------------------------------------------- the final model
accuracy=$(value runs/whole/summary.json accuracy_mean_model)
expect 0 "evaluate" "64 test examples" "accuracy" -- "$hearsay" evaluate runs/whole
"$hearsay" evaluate runs/whole --json >evaluated.json 2>&1
holds "the summary's number" \
  python3 -c "import json; assert abs(json.load(open('evaluated.json'))['metrics']['accuracy'] - $accuracy) < 1e-9"
expect 0 "a model to start from" finished -- \
  "$hearsay" train base.yaml --progress off "${slow[@]}" --set train.iterations=1 \
  --set optimizer.learning_rate=1e-30 --set train.initial_model=runs/whole/model.pt --output runs/from-model
holds "is where the other ended" test "$accuracy" = "$(value runs/from-model/summary.json accuracy_mean_model)"
expect 3 "no model" "file: is damaged, or no model" -- "$hearsay" train base.yaml --progress off \
  --set train.initial_model=file --output runs/from-nothing
expect 3 "another model" "other parameters|not a model" -- "$hearsay" train base.yaml --progress off \
  --set 'model={name: mlp, hidden: [16]}' --set train.initial_model=runs/whole/model.pt --output runs/from-other
if python3 -c 'import torch' 2>/dev/null; then
  holds "Python reads it" python3 -c "
import torch
a, b = torch.load('runs/whole/state_dict.pt'), torch.jit.load('runs/whole/model.pt').state_dict()
assert list(a) and all(torch.equal(a[name], b[name]) for name in b)"
fi

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 40 ]

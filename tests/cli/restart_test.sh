#!/usr/bin/env bash
# restart_test.sh HEARSAY SOURCE_DIR: a rank is killed at some instant; scripts/launch --restarts goes on from the
# newest complete checkpoint, and the run ends with the bits of one that was not disturbed.
source "$(dirname "$0")/expect.sh"
launch=$source_dir/scripts/launch

cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [128]}
data: {name: synthetic_digits, train_size: 1536, test_size: 64, batch_size: 8}
train: {epochs: 6, evaluate_every_epochs: 3, checkpoint: {every_iterations: 40}}
report: {every_iterations: 7}
YAML

# begin FOLDER COMMAND…: starts a job in the background; goes on when its ranks train.
begin() {
  local folder=$1
  shift
  "$@" >begun.log 2>&1 </dev/null &
  job=$!
  for _ in $(seq 600); do
    [ -s "$folder/metrics.rank0002.jsonl" ] && break
    sleep 0.05
  done
}

# kill_one FOLDER: one of its ranks, at some instant of the next second. SRANDOM needs no seed; a failure says both.
kill_one() {
  local ranks instant
  instant=$((SRANDOM % 1000))
  sleep "0.$(printf %03d "$instant")"
  mapfile -t ranks < <(pgrep -f "^$hearsay train .*--output $1( |\$)")
  [ "${#ranks[@]}" -gt 0 ] || return 1
  victim=$((SRANDOM % ${#ranks[@]}))
  kill -KILL "${ranks[$victim]}" && said="rank $victim of ${#ranks[@]}, after $instant ms"
}

i=0
# Slow enough that it trains when the signal comes.
for exchange in "{name: eventgrad, mixing: {name: difference, gamma: 0.4}}" "{name: gtopk}"; do
  i=$((i + 1))
  train=(-n 3 "$hearsay" train base.yaml --progress lines --set "exchange=$exchange"
    --set "model={name: mlp, hidden: [512, 256]}")
  expect 0 "$exchange, whole" -- "$launch" "${train[@]}" --output "runs/whole-$i"
  folder=runs/killed-$i
  begin "$folder" "$launch" --restarts 3 "${train[@]}" --output "$folder"
  kill_one "$folder" || fail "$exchange: nobody to kill"
  code=0
  wait "$job" || code=$?
  cp begun.log output
  holds "$exchange: it goes on ($said): $(cat begun.log)" test "$code" = 0
  holds "$exchange: it says which rank was killed" grep -qE "^launch: rank [0-2] on .* was ended by signal 9" begun.log
  holds "$exchange: and that it goes on" grep -q "2 restarts are left" begun.log
  holds "$exchange: the replicas of the run that was not disturbed ($said)" \
    test "$(value "runs/whole-$i/summary.json" replica_hash)" = "$(value "$folder/summary.json" replica_hash)"
done

# ---------------------------------------------------------------- without restarts: an end, a sentence, a summary
begin runs/alone "$launch" "${train[@]}" --output runs/alone
kill_one runs/alone || fail "nobody to kill"
code=0
wait "$job" || code=$?
holds "a killed job fails" test "$code" != 0
cp begun.log output
holds "and says who" grep -qE "^launch: rank [0-2] on .* was ended by signal 9" begun.log
holds "and leaves a summary" test "$(value runs/alone/summary.json status)" = killed
expect 0 "which others read" "killed" -- "$hearsay" watch runs/alone --once

# ---------------------------------------------------------------- --continue by hand
rm -f runs/alone/summary.json
expect 0 "goes on" "goes on from checkpoint|begins anew" finished -- \
  "$launch" "${train[@]}" --output runs/alone --continue
holds "to the same end" \
  test "$(value "runs/whole-$i/summary.json" replica_hash)" = "$(value runs/alone/summary.json replica_hash)"
expect 0 "a finished run is left alone" "has finished, there is nothing to continue" -- \
  "$launch" "${train[@]}" --output runs/alone --continue
expect 2 "another configuration" "holds a run of another configuration" -- \
  "$launch" "${train[@]}" --set seed=4 --output runs/alone --continue
expect 2 "it neither replaces nor resumes" "continue" -- "$hearsay" train base.yaml --overwrite --continue
expect 0 "from the beginning" finished -- "$launch" -n 1 "$hearsay" train base.yaml --progress lines \
  --set train.epochs=1 --output runs/new --continue
rm -r runs/new/checkpoints runs/new/summary.json
expect 0 "anew" "no complete checkpoint is there, the run begins anew" finished -- \
  "$launch" -n 1 "$hearsay" train base.yaml --progress lines --set train.epochs=1 --output runs/new --continue

# ---------------------------------------------------------------- hearsay close
expect 0 "a summary is not replaced" "has a summary already \(finished\)" -- "$hearsay" close runs/new
rm runs/new/summary.json
expect 0 "it says what is known" "was killed" -- "$hearsay" close runs/new
holds "the last record's iteration" test "$(value runs/new/summary.json iterations)" = 192
expect 2 "no run" "holds no run" -- "$hearsay" close runs
expect 2 "restarts of what cannot go on" "--restarts is for hearsay train" -- "$launch" --restarts 2 -n 1 true
expect 2 "a number" "must be a whole number" -- "$launch" --restarts x -n 1 true

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 22 ]

#!/usr/bin/env bash
# still_test.sh HEARSAY SOURCE_DIR: one rank of a job that cannot do without it is stopped. For less than
# train.failure_timeout_s it is slow, and the run is what it would have been; for longer the job ends and names it.
source "$(dirname "$0")/expect.sh"
launch=$source_dir/scripts/launch

cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [128]}
data: {name: synthetic_digits, train_size: 1536, test_size: 64, batch_size: 8}
train: {epochs: 60, evaluate_every_epochs: 0, failure_timeout_s: 3}
report: {every_iterations: 7}
YAML

# begin FOLDER ARGUMENTS…: starts a run of three in the background; goes on when its ranks train. `pids`: in order.
begin() {
  local folder=$1 pid rank
  shift
  timeout 100 "$launch" "${options[@]}" -n 3 "$hearsay" train base.yaml --progress off --output "$folder" "$@" \
    >begun.log 2>&1 </dev/null &
  job=$!
  for _ in $(seq 600); do
    [ "$(find "$folder" -name 'metrics.rank*.jsonl' -size +0 2>/dev/null | wc -l)" = 3 ] && break
    sleep 0.05
  done
  pids=()
  for pid in $(pgrep -f "^$hearsay train .*--output $folder( |\$)"); do
    rank=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    pids[rank]=$pid
  done
  holds "$folder: three ranks train" test "${#pids[@]}" = 3
}

# stands_still FOLDER ARGUMENTS…: a rank is stopped for good.
stands_still() {
  local folder=$1 victim=$((SRANDOM % 3)) code=0 left
  begin "$@"
  kill -STOP "${pids[$victim]}"
  wait "$job" || code=$?
  cp begun.log output
  checks=$((checks + 1))
  [ "$code" = 4 ] || fail "$folder: the job ends with $code"
  holds "$folder: who stood still" grep -qE "rank $victim.* not moved for train.failure_timeout_s" begun.log
  cp begun.log output
  mapfile -t left < <(pgrep -f "^$hearsay train .*--output $folder( |\$)")
  holds "$folder: nobody stays behind" test "${#left[@]}" = 0
  [ "${#left[@]}" = 0 ] || kill -KILL "${left[@]}"
}

options=()
i=0
for exchange in '{name: dpsgd}' '{name: eventgrad}' '{name: allreduce}' '{name: gtopk}' \
  '{name: allreduce, method: library}' '{name: lkgs}' '{name: diloco, local_steps: 5}' \
  '{name: noloco, local_steps: 5}'; do
  i=$((i + 1))
  stands_still "runs/still-$i" --set "exchange=$exchange"
done

# ---------------------------------------------------------------- stopped for less: the bits of one that was not
short=(--set train.epochs=8)
for exchange in '{name: dpsgd}' '{name: allreduce}'; do
  i=$((i + 1))
  expect 0 "$exchange, undisturbed" finished -- "$launch" -n 3 "$hearsay" train base.yaml --progress off \
    --output "runs/whole-$i" --set "exchange=$exchange" "${short[@]}"
  begin "runs/slow-$i" --set "exchange=$exchange" --set train.failure_timeout_s=20 "${short[@]}"
  kill -STOP "${pids[1]}"
  sleep 4
  kill -CONT "${pids[1]}"
  code=0
  wait "$job" || code=$?
  cp begun.log output
  holds "$exchange, stopped for 4 of 20 s: $code" test "$code" = 0
  holds "$exchange: the same bits" test "$(value "runs/slow-$i/summary.json" replica_hash)" = \
    "$(value "runs/whole-$i/summary.json" replica_hash)"
  holds "$exchange: the same bytes" test "$(value "runs/slow-$i/summary.json" payload_bytes)" = \
    "$(value "runs/whole-$i/summary.json" payload_bytes)"
done

# ---------------------------------------------------------------- the launcher goes on from a checkpoint
i=$((i + 1))
options=(--restarts 1)
begin "runs/again" --set exchange.name=dpsgd --set train.checkpoint.every_iterations=100 "${short[@]}"
kill -STOP "${pids[2]}"
code=0
wait "$job" || code=$?
cp begun.log output
holds "the job goes on: $code" test "$code" = 0
holds "from a checkpoint" grep -q "0 restarts are left" begun.log
holds "to the same end" test "$(value runs/again/summary.json replica_hash)" = \
  "$(value runs/whole-9/summary.json replica_hash)"

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 43 ]

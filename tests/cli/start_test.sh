#!/usr/bin/env bash
# start_test.sh HEARSAY SOURCE_DIR: a rank is killed while the job starts: before MPI is there, in MPI_Init, before the
# first iteration. Whether the launcher leaves the others alone (train.on_failure: continue) or not: the job ends soon
# and says which rank it was, or, where training had begun, goes on without it. Nothing hangs.
source "$(dirname "$0")/expect.sh"
launch=$source_dir/scripts/launch

cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [64]}
data: {name: synthetic_digits, train_size: 6000, test_size: 64, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, maximum_silence: 10}
train: {epochs: 100000, seconds: 3.5, evaluate_every_epochs: 0, failure_timeout_s: 3} # all instants are within it
YAML

# pid_of RANK FOLDER: fails if it is not there yet.
pid_of() {
  local pid
  for pid in $(pgrep -f "^$hearsay train .*--output $2( |\$)"); do
    grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ" 2>/dev/null && echo "$pid" && return
  done
  return 1
}

mpi_gave_up='^launch: MPI could not start'
outcomes=''
for mode in continue abort; do
  for after in 0 0.1 0.3 0.6 1 2; do
    folder=runs/$mode-$after victim=$((SRANDOM % 4)) pid=''
    timeout 100 "$launch" -n 4 "$hearsay" train base.yaml --progress off --set "train.on_failure=$mode" \
      --output "$folder" >begun.log 2>&1 </dev/null &
    job=$!
    for _ in $(seq 2000); do
      pid=$(pid_of "$victim" "$folder") && break
      kill -0 "$job" 2>/dev/null || break
    done
    sleep "$after"
    kill -KILL "$pid"
    code=0
    wait "$job" || code=$?
    cp begun.log output
    checks=$((checks + 1))
    outcomes+=" $mode-$after:$code"
    case $mode-$code in
      continue-0) pattern="lost +rank $victim after" ;;
      # Or MPI itself, in another rank, cannot find whom it is to reach, and ends the job before that rank is missed.
      continue-4) pattern="^hearsay: .*rank $victim has died before training began|$mpi_gave_up" ;;
      abort-4 | abort-137) pattern="rank $victim " ;;
      *) pattern='no such code' ;;
    esac
    grep -qE "$pattern" output || fail "$mode, rank $victim after $after s: $code, and nothing matches '$pattern'"
    mapfile -t left < <(pgrep -f "^$hearsay train .*--output $folder( |\$)")
    holds "$mode, after $after s: nobody stays behind" test "${#left[@]}" = 0
    [ "${#left[@]}" = 0 ] || kill -KILL "${left[@]}"
  done
done
printf 'exit codes:%s\n' "$outcomes"
# Neither instants nor machines are so slow that nobody dies at the start.
holds "some have died at the start:$outcomes" grep -q 'continue-[0-9.]*:4' <<<"$outcomes"
whole=("$launch" -n 4 "$hearsay" train base.yaml --progress off --set train.on_failure=continue --set train.epochs=1)
expect 0 "nobody dies" finished '!died' -- "${whole[@]}" --output runs/whole
# MPI's own failure, certain where two processes have nothing to reach each other by.
expect 4 "MPI cannot start" "$mpi_gave_up" '!terminate' -- env OMPI_MCA_btl=self "${whole[@]}" --output runs/unreachable
expect 2 "all leave together" 'already holds a run' '!died' -- "${whole[@]}" --output runs/whole
# Each rank looks at what runs on its host, and other processes end in the middle of that.
passing=()
for _ in 1 2 3 4; do
  (while :; do /bin/true; done) &
  passing+=($!)
done
for again in 1 2 3 4 5; do
  expect 0 "processes of others come and go, $again" finished '!died' '!terminate' -- "${whole[@]}" \
    --output "runs/passing-$again"
done
kill "${passing[@]}"

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 33 ]

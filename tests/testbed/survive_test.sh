#!/usr/bin/env bash
# A rank that is killed on one of four hosts: the others go on over TCP, with short packets and with long ones, and say
# who has died.
#   survive_test.sh TESTBED PROGRAM
set -euo pipefail
TESTBED=$1 program=$2
source "$(dirname "$0")/support.sh"
hosts=4
cat >"$folder/config.yaml" <<'YAML'
seed: 3
data: {name: synthetic_digits, train_size: 2048, test_size: 256, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}, correction: {name: drift}}
trigger: {name: adaptive, horizon: 1.0, maximum_silence: 10}
train: {epochs: 100, evaluate_every_epochs: 0, on_failure: continue, failure_timeout_s: 1.5}
report: {every_iterations: 7}
YAML

# pid_of RANK: its process.
pid_of() {
  local pid
  for pid in $(pgrep -f "^$program train .*--output $folder/run( |\$)"); do
    if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$pid"; fi
  done
}

# as_it_should VICTIM: of the summary.
as_it_should() {
  python3 - "$folder/run/summary.json" "$1" <<'PY'
import json, sys
s = json.load(open(sys.argv[1]))
good = s["status"] == "finished" and [r["rank"] for r in s["ranks_lost"]] == [int(sys.argv[2])]
sys.exit(not (good and s["iterations"] >= 3200 and s["accuracy_mean_model"] > 0.8))
PY
}

# killed VICTIM HIDDEN: a perceptron with so many units in its hidden layer.
killed() {
  local job code=0 pid=''
  rm -rf "$folder/run"
  timeout 120 "$TESTBED" run -np $hosts --mpirun --enable-recovery -- "$program" train "$folder/config.yaml" \
    --set "model={name: mlp, hidden: [$2]}" --output "$folder/run" --progress off >"$folder/log" 2>&1 &
  job=$!
  for _ in $(seq 600); do
    [[ $(find "$folder/run" -name 'metrics.rank*.jsonl' -size +0 2>/dev/null | wc -l) -lt $hosts ]] || break
    sleep 0.05
  done
  pid=$(pid_of "$1")
  [[ -n $pid ]] || { cat "$folder/log"; failed "no rank $1 to kill"; }
  kill -KILL "$pid"
  wait $job || code=$?
  [[ $code -eq 0 ]] || { cat "$folder/log"; failed "rank $1 of $hosts is killed: the job ends with $code"; }
  as_it_should "$1" || { cat "$folder/run/summary.json"; failed "rank $1 of $hosts is killed: another summary"; }
  passed "rank $1 is killed, $2 hidden units: the others go on"
}

"$TESTBED" up $hosts 1gbit
killed 0 16  # packets that Open MPI sends at once
killed 2 128 # packets that it announces first

#!/usr/bin/env bash
# A rank that is killed on one of four hosts, or that stands still: the others go on over TCP, with short packets and
# with long ones, and say who has died. A spare on a fifth host takes the place.
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
    if grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}

# as_it_should VICTIM [PROCESS]: of the summary; the process that came in the victim's place.
as_it_should() {
  python3 - "$folder/run/summary.json" "$@" <<'PY'
import json, sys
s = json.load(open(sys.argv[1]))
victim, came = int(sys.argv[2]), [int(process) for process in sys.argv[3:]]
good = s["status"] == "finished" and [r["rank"] for r in s["ranks_lost"]] == [victim]
good = good and [(r["rank"], r["process"]) for r in s["ranks_joined"]] == [(victim, process) for process in came]
good = good and all(r["iterations"] > 20 for r in s["ranks_joined"])
sys.exit(not (good and s["iterations"] >= 3200 and s["accuracy_mean_model"] > 0.8))
PY
}

# begun PROCESSES SETTING…: a job on as many hosts, all of whose ranks that train have begun.
begun() {
  local processes=$1
  rm -rf "$folder/run"
  timeout 180 "$TESTBED" run -np "$processes" --mpirun --enable-recovery -- "$program" train "$folder/config.yaml" \
    "${@:2}" --output "$folder/run" --progress off >"$folder/log" 2>&1 &
  job=$!
  for _ in $(seq 600); do
    [[ $(find "$folder/run" -name 'metrics.rank*.jsonl' -size +0 2>/dev/null | wc -l) -lt $hosts ]] || break
    sleep 0.05
  done
}

# signalled RANK SIGNAL: sends it.
signalled() {
  local pid
  pid=$(pid_of "$1")
  [[ -n $pid ]] || { cat "$folder/log"; failed "no rank $1 to send $2"; }
  kill "-$2" "$pid"
}

# gone_on WHAT VICTIM [PROCESS]: the job ends well, without the victim.
gone_on() {
  local code=0
  wait $job || code=$?
  [[ $code -eq 0 ]] || { cat "$folder/log"; failed "$1: the job ends with $code"; }
  as_it_should "${@:2}" || { cat "$folder/run/summary.json"; failed "$1: another summary"; }
  passed "$1: the others go on"
}

short='model={name: mlp, hidden: [16]}'  # packets that Open MPI sends at once
long='model={name: mlp, hidden: [128]}' # packets that it announces first

"$TESTBED" up $((hosts + 1)) 1gbit
begun $hosts --set "$short"
signalled 0 KILL
gone_on "rank 0 is killed, short packets" 0
begun $hosts --set "$long"
signalled 2 KILL
gone_on "rank 2 is killed, long packets" 2
for victim in 0 2; do
  begun $((hosts + 1)) --set "$long" --set train.spares=1 --set train.epochs=200
  signalled $victim KILL
  gone_on "rank $victim is killed, and a spare comes" $victim $hosts
done
begun $hosts --set "$long" --set train.epochs=400
signalled 1 STOP
sleep 2.5 # the others have taken it for dead, and train on: long enough on a fast machine, too
signalled 1 CONT
gone_on "rank 1 stands still for longer than the time-out" 1
grep -q "rank 1 was not heard of for train.failure_timeout_s and was taken for dead" "$folder/log" ||
  { cat "$folder/log"; failed "rank 1 does not find out"; }
begun $hosts --set "$long" --set train.failure_timeout_s=20
signalled 1 STOP
sleep 3
signalled 1 CONT
code=0
wait $job || code=$?
[[ $code -eq 0 ]] || { cat "$folder/log"; failed "a slow rank: the job ends with $code"; }
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["ranks_lost"] != [])' "$folder/run/summary.json" ||
  failed "a rank that stands still for a moment is lost"
passed "rank 1 stands still for a moment: nobody is lost"

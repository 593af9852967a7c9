#!/usr/bin/env bash
# Who waits for the network, on four hosts over TCP with digits that the program draws itself:
#   at 100 Mbit/s D-PSGD spends most of its time waiting, asynchronous EventGraD none of it;
#   a link or a rank that becomes slow makes everybody in lockstep slow, asynchronously nobody else.
#   waiting_test.sh TESTBED PROGRAM SOURCE_DIR
#
# Rates of one run are compared with each other, never with a figure: h2 becomes slow and well again while it trains,
# and what else the machine does strikes slow and well alike. A burst of it may still spoil a run: a law about rates
# holds if it holds in one of three.
set -euo pipefail
TESTBED=$1 program=$2 source_dir=$3
source "$(dirname "$0")/support.sh"
hosts=4
window_s=2.5 settle_s=0.5 # how long h2 is slow or well; how long before that does not count, while queues drain
kept=0.7                  # of its rate: in lockstep every rank keeps less than that, asynchronously more

testbed() { "$TESTBED" "$@" || failed "testbed $*"; }
calc() { awk "BEGIN { print $1 }"; }

# compare DESCRIPTION A RELATION B: says both figures; false if the relation (< or >) does not hold.
compare() {
  local word=holds
  awk "BEGIN { exit !($2 $3 $4) }" || word='DOES NOT HOLD'
  printf '  %s: %.4g %s %.4g %s\n' "$1" "$2" "$3" "$4" "$word"
  [[ $word == holds ]]
}

# arguments CONFIG SETTING…: those of a run, in the array `run`.
arguments() {
  run=(run -np "$hosts" -- "$program" train "$source_dir/configs/digits/$1" --set train.evaluate_every_epochs=0
    --set train.epochs=1000000 --set data.train_size=640 --set data.test_size=40 "${@:2}"
    --output "$folder/run" --overwrite --progress off)
}

# ---------------------------------------------------------------- 100 Mbit/s
field() { sed -nE "s/^ *\"$1\": ([0-9.e+-]+),?$/\1/p" "$folder/run/summary.json"; }

# measure CONFIG ITERATIONS SETTING…: trains a perceptron of 407 kB, which a link of 100 Mbit/s takes 33 ms for. Sets
# `waiting`, the share of time; iteration_s; and wire_s, what a rank's bytes of one iteration take on its link.
measure() {
  local run
  arguments "$1" --set 'model={name: mlp, hidden: [128]}' --set train.iterations="$2" "${@:3}"
  timeout 120 "$TESTBED" "${run[@]}" >"$folder/log" 2>&1 || { cat "$folder/log"; failed "$1 at 100 Mbit/s"; }
  iteration_s=$(field time_per_iteration_s)
  waiting=$(calc "$(field wait_s) / ($iteration_s * $2)")
  wire_s=$(calc "$(field bytes_sent) / $hosts / $2 * 8 / 100e6")
}

testbed up $hosts 100mbit
measure dpsgd.yaml 30
compare "D-PSGD, share of waiting" "$waiting" '>' 0.5 || failed "D-PSGD does not wait at 100 Mbit/s"
compare "D-PSGD, an iteration and its bytes on the link, s" "$iteration_s" '>' "$(calc "0.95 * $wire_s")" ||
  failed "the link of 100 Mbit/s is faster than that"
passed "D-PSGD waits for a link of 100 Mbit/s"
dense_s=$wire_s
measure eventgrad.yaml 600 --set exchange.schedule=asynchronous
compare "asynchronous EventGraD, share of waiting" "$waiting" '<' 0.01 || failed "asynchronous EventGraD waits"
compare "asynchronous EventGraD, an iteration and half of D-PSGD's bytes, s" \
  "$iteration_s" '<' "$(calc "$dense_s / 2")" ||
  failed "asynchronous EventGraD waits, and does not say so"
passed "asynchronous EventGraD does not"

# ---------------------------------------------------------------- a slow link, a slow rank
# Lines "iteration seconds" of a rank, as far as they have reached the disk, where the last line may be half there.
progress() {
  sed -nE 's/^\{"record":"iteration".*"iteration":([0-9]+),.*"time_s":([0-9.e+-]+),.*\}$/\1 \2/p' \
    "$folder/run/metrics.rank000$1.jsonl" 2>/dev/null || true
}

# The clock's reading at the first iteration, once metrics have reached the disk: they do while one is written.
first_iteration() {
  local last
  for _ in $(seq 1500); do
    last=$(progress 0 | tail -n 1)
    [[ -z $last ]] || { date +%s.%N | awk -v since="${last#* }" '{ printf "%.3f", $1 - since }'; return; }
    sleep 0.02
  done
}

# window NAME: with the hosts as they are now. To the file windows: "NAME from to", seconds since the first iteration.
window() {
  local from
  sleep $settle_s
  from=$(date +%s.%N)
  sleep $window_s
  echo "$1 $from $(date +%s.%N)" | awk -v origin="$origin" '{ print $1, $2 - origin, $3 - origin }' >>"$folder/windows"
}

# rate RANK NAME: iterations a second in a window, 0 where there was not more than one.
rate() {
  progress "$1" | awk -v window="$(grep "^$2 " "$folder/windows")" '
    BEGIN { split(window, limit, " ") }
    $2 >= limit[2] && $2 <= limit[3] { if (!n++) { k = $1; t = $2 } last_k = $1; last_t = $2 }
    END { print (n > 1 ? (last_k - k) / (last_t - t) : 0) }'
}

# disturbed CONFIG SETTING…: a run during which h2 gets a slow link, then little of a processor, and is well in between.
disturbed() {
  local run job origin
  rm -rf "$folder/run" "$folder/windows"
  arguments "$@" --set report.every_iterations=1
  timeout 120 "$TESTBED" "${run[@]}" >"$folder/log" 2>&1 &
  job=$!
  origin=$(first_iteration)
  [[ -n $origin ]] || { cat "$folder/log"; failed "$*: does not begin to train"; }
  window well
  testbed slow h2 10mbit
  window link
  testbed slow h2 1gbit
  window well-again
  testbed throttle h2 0.05
  window rank
  testbed throttle h2 $hosts
  kill "$job" 2>/dev/null || { cat "$folder/log"; failed "$*: has ended by itself"; }
  wait "$job" || true # ranks stop in good order; mpirun has an exit code of its own for that
}

# slowed RANK link|rank: what a rank of the disturbed run has kept of its rate.
slowed() {
  awk -v first="$(rate "$1" well)" -v second="$(rate "$1" well-again)" -v now="$(rate "$1" "$2")" \
    'BEGIN { well = first < second ? first : second; print (well > 0 ? now / well : 0) }'
}

lockstep_law() {
  local rank holds=true
  disturbed dpsgd.yaml
  for ((rank = 0; rank < hosts; ++rank)); do
    compare "lockstep, slow link of h2, rank $rank keeps" "$(slowed $rank link)" '<' $kept || holds=false
    compare "lockstep, slow rank on h2, rank $rank keeps" "$(slowed $rank rank)" '<' $kept || holds=false
  done
  $holds
}

asynchronous_law() {
  local rank holds=true
  disturbed eventgrad.yaml --set exchange.schedule=asynchronous
  for rank in 0 2 3; do
    compare "asynchronous, slow link of h2, rank $rank keeps" "$(slowed $rank link)" '>' $kept || holds=false
    compare "asynchronous, slow rank on h2, rank $rank keeps" "$(slowed $rank rank)" '>' $kept || holds=false
  done
  # h2's own rank shares its processor with a communication thread that now polls, which on a busy machine is felt.
  compare "asynchronous, slow link of h2, its own rank keeps" "$(slowed 1 link)" '>' 0.3 || holds=false
  compare "asynchronous, slow rank on h2, that one keeps" "$(slowed 1 rank)" '<' $kept || holds=false
  $holds
}

# in_one_of_three LAW DESCRIPTION
in_one_of_three() {
  local attempt
  for attempt in 1 2 3; do
    if "$1"; then passed "$2"; return; fi
    echo "  attempt $attempt of 3 failed"
  done
  failed "not so: $2"
}

testbed down
testbed up $hosts 1gbit
testbed throttle h2 $hosts # limits nothing; but only ranks that were started under a limit can get another one
in_one_of_three lockstep_law "in lockstep everybody becomes as slow as the slowest"
in_one_of_three asynchronous_law "asynchronously nobody else does, and a slow link slows nobody"

#!/usr/bin/env bash
# The examples of the guide run, do what they are there to show, and stand there as they are here.
# Usage: examples_test.sh OWN_LOOP SOURCE_DIR
set -euo pipefail
own_loop=$1 source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
run() { "$MPIEXEC" -n "$1" ${mpiexec_args[@]+"${mpiexec_args[@]}"} "${@:2}"; }
mpiexec_args=()
if grep -qE 'Open MPI|OpenRTE' < <("$MPIEXEC" --version 2>&1); then mpiexec_args=(--oversubscribe --bind-to none); fi
fail() { echo "FAILED: $1"; exit 1; }

# Ranks with even numbers see a slope of 1.5, the others one of 2.5: alone they would stay there, together they meet.
for exchange in '{name: dpsgd}' '{name: allreduce}' '{name: eventgrad, mixing: {name: arrival}}'; do
  echo "exchange: $exchange" >gossip.yaml
  run 4 "$own_loop" gossip.yaml >output || fail "own_loop with $exchange"
  [[ $(wc -l <output) == 4 ]] || fail "own_loop with $exchange: four ranks, $(wc -l <output) lines"
  awk -v exchange="$exchange" '
    function wrong(what) { print "FAILED: " exchange ": " what > "/dev/stderr"; bad = 1 }
    { sum += $5; if ($5 < 1.6 || $5 > 2.4) wrong($0) }
    $10 == 0 { wrong("no messages: " $0) }
    END { if (sum < 7.6 || sum > 8.4) wrong("mean slope " sum / 4); exit bad }' output
done
echo 'exchange: {name: dpsgd, epochs: 3}' >wrong.yaml
code=0
run 2 "$own_loop" wrong.yaml >output 2>&1 || code=$?
[[ $code == 2 ]] || fail "a wrong key ends with $code, expected 2"
grep -q 'wrong.yaml:1:.*exchange.epochs: unknown key' output || fail "the message of a wrong key"
# The guide's lines, but for their indentation and the comment beside #include, are the example's.
sed -n '/<!-- own_loop -->/,/<!-- own_loop -->/p' "$source_dir/docs/guide/extending.md" | grep -v '^<!--\|^```\|^$' |
  sed 's/^ *//; s|>  // no LibTorch$|>|' >shown
[[ $(wc -l <shown) -ge 10 ]] || fail "the guide shows no own_loop"
while IFS= read -r line; do
  grep -qF -- "$line" "$source_dir/apps/examples/own_loop.cpp" ||
    fail "the guide's own_loop has a line of its own: $line"
done <shown
echo "own_loop learns together under three exchanges, and says where a configuration is wrong"

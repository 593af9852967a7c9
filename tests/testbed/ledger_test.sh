#!/usr/bin/env bash
# What the interfaces of the hosts count agrees with the ledger, within the overhead of the protocols below it.
#   ledger_test.sh TESTBED PROGRAM SOURCE_DIR
#
# Two runs of different length, so that start, evaluation and end, which the ledger does not book, cancel out. A host
# whose rank sends S bytes in s puts and receives R bytes in r puts must have sent
#   at least S: every byte that the ledger claims has passed the interface;
#   at most S (1 + 66/1448) + R 66/1448 + 200 (s + r):
#     66 bytes of Ethernet (14), IP (20) and TCP (32, with time stamps) headers for every segment of 1448 bytes sent,
#     and an #     acknowledgement of as many for every segment received (fewer where the kernel joins segments or
#     delays
#     acknowledgements, as it does);
#     a put is matched, made and flushed by short messages of Open MPI: header, request and grant of a long message,
#     flush #     and its answer; with headers and acknowledgements of their own about 150 bytes were measured for each
#     put, sent or
#     received (empty packets, osc/pt2pt).
set -euo pipefail
TESTBED=$1 program=$2 source_dir=$3
source "$(dirname "$0")/support.sh"
hosts=4

train() {  # train OSC ITERATIONS CONFIG SETTING…
  local osc=$1 iterations=$2 config=$3
  shift 3
  "$TESTBED" run -np $hosts --osc "$osc" -- "$program" train "$source_dir/configs/digits/$config" \
    --set train.iterations="$iterations" --set train.epochs=1000 --set train.evaluate_every_epochs=0 \
    --set data.train_size=600 --set data.test_size=60 "$@" --output "$folder/run" --overwrite --progress off \
    >"$folder/log" 2>&1 || { cat "$folder/log"; failed "$config over $osc"; }
}

# Lines "host sent": bytes that have left each host.
sent_by_hosts() { "$TESTBED" status | awk 'NR > 1 { print substr($1, 2), $5 }'; }
# Lines "host S s R r" from the last run's ledger; rank i is on host i + 1.
booked() {
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) c[$i] = i; next }
           { S[$c["sender"]] += $c["bytes_sent"]; s[$c["sender"]] += $c["puts"]
             R[$c["receiver"]] += $c["bytes_sent"]; r[$c["receiver"]] += $c["puts"] }
           END { for (i in S) print i + 1, S[i], s[i], R[i], r[i] }' "$folder/run/communication.csv" | sort -n
}

measure() {  # measure OUTPUT OSC ITERATIONS CONFIG SETTING…: lines "host sent S s R r" of one run
  local output=$1
  shift
  sent_by_hosts | sort -n >"$folder/before"
  train "$@"
  sent_by_hosts | sort -n >"$folder/after"
  join "$folder/before" "$folder/after" | awk '{ print $1, $3 - $2 }' | join - <(booked) >"$output"
}

check() {  # check OSC CONFIG SETTING…
  measure "$folder/short" "$1" 20 "${@:2}"
  measure "$folder/long" "$1" 120 "${@:2}"
  join "$folder/short" "$folder/long" | awk -v name="$*" -v hosts=$hosts '
    { sent = $7 - $2; S = $8 - $3; s = $9 - $4; R = $10 - $5; r = $11 - $6
      bound = S * (1 + 66 / 1448) + R * 66 / 1448 + 200 * (s + r)
      printf "h%d: ledger %d bytes, interface %d, ratio %.4f, at most %.4f\n", $1, S, sent, sent / S, bound / S
      if (S > 0 && sent >= S && sent <= bound) ++good }
    END { exit good != hosts }' || failed "$*: interface and ledger do not agree"
  passed "$*"
}

"$TESTBED" up $hosts 100mbit
check pt2pt dpsgd.yaml
check ucx dpsgd.yaml
check pt2pt allreduce.yaml

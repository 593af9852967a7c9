#!/usr/bin/env bash
# The ledger against Open MPI's own count: per pair of ranks, the bytes and calls of one-sided communication that
# communication.csv claims are exactly those that MPI's monitoring component saw.
#   monitoring_test.sh PROGRAM SOURCE_DIR
set -euo pipefail
program=$1 source_dir=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() {  # check NAME CONFIG SETTING…
  local name=$1 config=$2
  shift 2
  "${MPIEXEC:-mpirun}" --oversubscribe --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
    --mca pml_monitoring_filename "$folder/$name" -n 3 "$program" train "$source_dir/configs/digits/$config" \
    --set train.iterations=40 --set data.train_size=600 --set data.test_size=60 "$@" \
    --output "$folder/run-$name" --progress off >"$folder/$name.log" 2>&1 || { cat "$folder/$name.log"; exit 1; }
  compare "$name"
}

compare() {
  local name=$1 sender receiver bytes calls pairs=0
  while read -r _ sender receiver bytes _ calls _; do
    claimed=$(awk -F, -v s="$sender" -v r="$receiver" '
      NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
      $column["sender"] == s && $column["receiver"] == r { print $column["bytes_sent"], $column["puts"] }
    ' "$folder/run-$name/communication.csv")
    if [[ $claimed != "$bytes $calls" ]]; then
      echo "FAILED: $name, rank $sender to $receiver: MPI counted '$bytes $calls' (bytes, calls), the ledger '$claimed'"
      exit 1
    fi
    pairs=$((pairs + 1))
  done < <(grep -h '^S' "$folder/$name".*.prof)
  [[ $pairs -eq 6 ]] || { echo "FAILED: $name: MPI reported $pairs pairs of ranks instead of 6"; exit 1; }
  echo "passed: $name, 6 directed edges agree to the byte and call"
}

check dpsgd dpsgd.yaml
check eventgrad eventgrad.yaml
check sparse sparse-eventgrad.yaml
check asynchronous eventgrad.yaml --set exchange.schedule=asynchronous

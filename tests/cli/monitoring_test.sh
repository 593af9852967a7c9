#!/usr/bin/env bash
# The ledger against Open MPI's own count: per pair of ranks, the bytes and calls that communication.csv claims are
# exactly those that MPI's monitoring component saw: of one-sided communication (its lines S) on the neighbour path, of
# point-to-point messages (its lines E) on the global path.
#   monitoring_test.sh PROGRAM SOURCE_DIR
set -euo pipefail
program=$1 source_dir=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() {  # check NAME CONFIG KIND SETTING…
  local name=$1 config=$2 kind=$3
  shift 3
  "${MPIEXEC:-mpirun}" --oversubscribe --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
    --mca pml_monitoring_filename "$folder/$name" -n 3 "$program" train "$source_dir/configs/digits/$config" \
    --set train.iterations=40 --set data.train_size=600 --set data.test_size=60 "$@" \
    --output "$folder/run-$name" --progress off >"$folder/$name.log" 2>&1 || { cat "$folder/$name.log"; exit 1; }
  compare "$name" "$kind"
}

compare() {
  local name=$1 kind=$2 sender receiver bytes calls pairs=0 total=0 claimed_total
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
    total=$((total + bytes))
  done < <(grep -h "^$kind" "$folder/$name".*.prof)
  claimed_total=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next } { sum += $column["bytes_sent"] }
                           END { printf "%d", sum }' "$folder/run-$name/communication.csv")
  if [[ $pairs -eq 0 || $total != "$claimed_total" ]]; then
    echo "FAILED: $name: MPI counted $total bytes on $pairs pairs of ranks, the ledger $claimed_total"
    exit 1
  fi
  echo "passed: $name, $pairs directed edges agree to the byte and call"
}

check dpsgd dpsgd.yaml S
check eventgrad eventgrad.yaml S
check sparse sparse-eventgrad.yaml S
check asynchronous eventgrad.yaml S --set exchange.schedule=asynchronous
check allreduce allreduce.yaml E
check gtopk gtopk.yaml E
check gtopk_tree gtopk.yaml E --set exchange.merge=tree --set exchange.residual=owner
check topk gtopk.yaml E --set 'exchange={name: topk}'

#!/usr/bin/env bash
# Every exchange that there is trains on four hosts over TCP, at 1 Gbit/s and at 100 Mbit/s. In lockstep the global ones
# end with equal replicas, and all end with the same ones at both rates: the network decides when, not what. Who forgets
# the network's options is told them.
#   exchanges_test.sh TESTBED PROGRAM SOURCE_DIR
set -euo pipefail
TESTBED=$1 program=$2 configs=$3/configs/digits
source "$(dirname "$0")/support.sh"
hosts=4 iterations=6

# train NAME RATE CONFIG SETTING…: its replicas, a line a rank, go to the file NAME.RATE.
train() {
  local name=$1 rate=$2 config=$3
  shift 3
  timeout 120 "$TESTBED" run -np $hosts -- "$program" train "$configs/$config" --set train.iterations=$iterations \
    --set train.epochs=100 --set train.evaluate_every_epochs=0 --set data.train_size=320 --set data.test_size=40 "$@" \
    --output "$folder/run" --overwrite --progress off >"$folder/log" 2>&1 ||
    { echo "exit code $?"; cat "$folder/log"; failed "$name does not train at $rate"; }
  tr -d '\n ' <"$folder/run/summary.json" | grep -oE '"replica_hash":\[[^]]*\]' | grep -oE '[0-9a-f]{16}' \
    >"$folder/$name.$rate" || true
  [[ $(wc -l <"$folder/$name.$rate") -eq $hosts ]] || failed "$name at $rate: no replica a rank in its summary"
  [[ $(sed -nE 's/^ *"iterations": ([0-9]+),/\1/p' "$folder/run/summary.json") -eq $iterations ]] ||
    failed "$name at $rate: not $iterations iterations: $(cat "$folder/run/summary.json")"
}

equal_replicas() {  # equal_replicas NAME RATE
  [[ $(sort -u "$folder/$1.$2" | wc -l) -eq 1 ]] || failed "$1 at $2: replicas differ: $(paste -sd ' ' "$folder/$1.$2")"
}

# short_rounds EXCHANGE: its setting; of one with local steps, rounds of which the last ends with the run.
short_rounds() {
  local more=''
  if grep -q local_steps < <("$program" describe "$1"); then more=', local_steps: 2'; fi
  echo "exchange={name: $1$more}"
}

# What `hearsay list` calls exchanges, without the neighbours'. Of all ranks these end with unlike replicas.
unlike='noloco sparta fda'
neighbours='quasi_global_momentum gradient_tracking momentum_tracking beer motef cedas push_sum gasloc gossip_outer'
global=$("$program" list exchange | sed -nE 's/^  ([a-z_]+) .*/\1/p' | grep -vxE "dpsgd|eventgrad|${neighbours// /|}")
[[ $(wc -w <<<"$global") -ge 7 ]] || failed "hearsay list knows few exchanges: $global"
for rate in 1gbit 100mbit; do
  "$TESTBED" down
  "$TESTBED" up $hosts $rate
  for exchange in $global; do
    train "$exchange" $rate allreduce.yaml --set "$(short_rounds "$exchange")"
    [[ " $unlike " == *" $exchange "* ]] || equal_replicas "$exchange" $rate
  done
  train dpsgd $rate dpsgd.yaml
  for exchange in $neighbours; do train "$exchange" $rate dpsgd.yaml --set "$(short_rounds "$exchange")"; done
  for variant in eventgrad sparse-eventgrad; do
    train $variant $rate $variant.yaml --set trigger.warmup_iterations=2
    train $variant-asynchronous $rate $variant.yaml --set exchange.schedule=asynchronous --set train.budget=rank
  done
  train gradient_dropping-asynchronous $rate allreduce.yaml \
    --set 'exchange={name: gradient_dropping, schedule: asynchronous}' --set train.budget=rank
  passed "every exchange trains at $rate, $SECONDS s since the start"
done
for name in $global $neighbours dpsgd eventgrad sparse-eventgrad; do
  cmp -s "$folder/$name.1gbit" "$folder/$name.100mbit" || failed "$name: other replicas at 100 Mbit/s than at 1 Gbit/s"
done
passed "in lockstep the rate of the network does not show in the replicas"

# Left alone, Open MPI 4.1.4 chooses a window component that cannot serve hosts over TCP. One that chooses well trains.
code=0
env -u OMPI_MCA_osc -u OMPI_MCA_pml -u OMPI_MCA_btl timeout 120 mpirun --allow-run-as-root -np 2 --host h1:1,h2:1 \
  --map-by slot --bind-to none --mca plm_rsh_agent "$TESTBED enter" --mca plm_rsh_no_tree_spawn 1 \
  --mca oob_tcp_if_include 198.18.99.0/24 --mca btl_tcp_if_include 198.18.99.0/24 \
  "$program" train "$configs/dpsgd.yaml" --set train.iterations=$iterations --set data.train_size=320 \
  --set data.test_size=40 --output "$folder/run" --overwrite --progress off >"$folder/log" 2>&1 || code=$?
advice='over TCP .mpirun --mca pml ob1 --mca btl tcp,self --mca osc ^ucx'
if [[ $code -ne 0 ]] && { [[ $code -ne 4 ]] || ! grep -q "$advice" "$folder/log"; }; then
  cat "$folder/log"
  failed "without the network's options: exit code $code"
fi
passed "without the network's options the exit code is $code; 4 comes with the options"

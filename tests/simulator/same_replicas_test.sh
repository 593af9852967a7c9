#!/usr/bin/env bash
# same_replicas_test.sh HEARSAY SOURCE_DIR: in lockstep a simulated run ends with the replicas of the run under mpirun,
# to the last bit: the same shuffles, dropout, initial model and order of additions. Exit status 77: skipped, no
# simulator that trains was built beside this program ($HEARSAY_SIMULATOR names another one).
source "$(dirname "$0")/../cli/expect.sh"

simulate=("$hearsay" simulate)
platform=(--platform "$source_dir/configs/platforms/ethernet-1g-32.xml")
[ -z "${HEARSAY_SIMULATOR:-}" ] || simulate+=(--simulator "$HEARSAY_SIMULATOR")

skip() {
  echo "skipped: $1"
  exit 77
}
"${simulate[@]}" "$source_dir/configs/digits/dpsgd.yaml" "${platform[@]}" -n 1 -o probe --set train.iterations=1 \
  >output 2>&1
case $? in
  0) ;;
  2) if grep -q 'hearsay-simulator, is not built yet' output; then
       skip "no hearsay-simulator was built (preset simulator)"
     fi
     if grep -q 'built without LibTorch' output; then skip "the simulator was built without LibTorch"; fi
     fail "a run of one rank" ;;
  *) fail "a run of one rank" ;;
esac

# What does not depend on the order in which an MPI library adds: the mean model's accuracy may, by a rounding.
outcome() {
  tr -d '\n ' <"$1/summary.json" |
    grep -oE '"(replica_hash":\[[^]]*\]|(messages|payload_bytes|index_bytes)":[0-9]+)'
}

# same NAME RANKS CONFIG OPTION…: simulated and under mpirun.
same() {
  local name=$1 ranks=$2 config=$source_dir/configs/$3
  shift 3
  local options=(--set train.iterations=10 --set train.evaluate_every_epochs=0 "$@")
  expect 0 "$name, simulated" finished -- "${simulate[@]}" "$config" "${platform[@]}" -n "$ranks" -o "$name-simulated" \
    "${options[@]}"
  expect 0 "$name, under mpirun" finished -- "$mpiexec" "${mpiexec_args[@]}" -n "$ranks" "$hearsay" train "$config" \
    -o "$name" "${options[@]}"
  holds "$name: replicas are counted" test "$(outcome "$name" | grep -oE '[0-9a-f]{16}' | wc -l)" = "$ranks"
  holds "$name: the same outcome" test "$(outcome "$name")" = "$(outcome "$name-simulated")"
}

same eventgrad 3 digits/eventgrad.yaml --set trigger.warmup_iterations=2
same gtopk 4 digits/gtopk.yaml
same one-peer 4 digits/dpsgd.yaml --set topology.graph.name=one_peer_exponential
same diloco 3 digits/diloco.yaml --set exchange.local_steps=4
same noloco 3 digits/diloco.yaml --set "exchange={name: noloco, local_steps: 4}"
same gossip-outer 3 digits/gossip-outer.yaml --set exchange.local_steps=4
same sparseloco 3 digits/diloco.yaml --set "exchange={name: sparseloco, local_steps: 4}" \
  --set "sparsify={selector: {name: chunked, density: 0.1}, quantiser: {name: two_bit}}"
# Collectives in the middle of a backward pass, where ranks take turns.
same lkgs 2 mnist/lkgs.yaml --set "data={name: synthetic_digits, batch_size: 16}"
holds "eventgrad: some segment was silent" test "$(outcome eventgrad | sed -n 's/"messages"://p')" -lt 480

expect 0 "compare" "^eventgrad-simulated .* ~100 ms" "^note: eventgrad-simulated ended with the replicas of the first" \
  "^note: ~ the time of eventgrad-simulated is simulated" -- "$hearsay" compare eventgrad eventgrad-simulated

echo "$checks checks, $failures failed"
[ "$failures" = 0 ]

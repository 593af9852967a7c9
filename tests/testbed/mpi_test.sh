#!/usr/bin/env bash
# Programs of the test suite on four hosts over TCP, one rank a host.
#   mpi_test.sh TESTBED OSC PROGRAM…         OSC is pt2pt or ucx; HEARSAY_TESTBED_RATE (1gbit) the rate of the links
set -euo pipefail
TESTBED=$1 osc=$2
shift 2
source "$(dirname "$0")/support.sh"
export HEARSAY_EXPECTED_RANKS=4
export HEARSAY_STRESS_PACKETS=${HEARSAY_STRESS_PACKETS:-1000} # a flood takes long where every put crosses two stacks
"$TESTBED" up 4 "${HEARSAY_TESTBED_RATE:-1gbit}"
for program in "$@"; do
  echo "== $(basename "$program")"
  "$TESTBED" run -np 4 --osc "$osc" -- "$program" || failed "$(basename "$program") over $osc"
  passed "$(basename "$program") over $osc, $SECONDS s since the start"
done

#!/usr/bin/env bash
# The tests of the Python package. What needs torch or mpi4py is skipped where it is not installed.
# Usage: run.sh PYTHON PACKAGE_DIR [HEARSAY [SAME_LOOP [PATTERN]]]; HEARSAY and SAME_LOOP may be none.
set -euo pipefail
PYTHONPATH=$(realpath "$2")
export PYTHONPATH HEARSAY=${3:-none} SAME_LOOP=${4:-none}
[[ $HEARSAY != none ]] || HEARSAY=''
[[ $SAME_LOOP != none ]] || SAME_LOOP=''
cd "$(dirname "${BASH_SOURCE[0]}")"
exec "$1" -B -m unittest discover --pattern "${5:-*_test.py}"

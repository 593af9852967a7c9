#!/usr/bin/env bash
# run.sh [HEARSAY]: the tests of analysis/, by a Python that has pandas. Exit status 77: skipped, no such Python here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [[ $# -gt 0 ]]; then export HEARSAY=$1; fi
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import matplotlib, numpy, pandas, yaml' 2>/dev/null; then
    exec "$python" -B -m unittest discover --pattern '*_test.py'
  fi
done
echo \
  "skipped: no Python here has numpy, pandas, matplotlib and yaml (python3-pandas, python3-matplotlib, python3-yaml)"
exit 77

#!/usr/bin/env bash
# run.sh [HEARSAY [MAILBOX [KERNELS]]]: the smoke test of research/. Exit status 77: skipped, no Python here has pandas.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export HEARSAY=${1:+$(realpath "$1")} MAILBOX=${2:+$(realpath "$2")} KERNELS=${3:+$(realpath "$3")}
export PYTHONPATH=$root/tests/analysis:$root/research:$root/analysis
cd "$root/research/tests"
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import matplotlib, numpy, pandas, yaml' 2>/dev/null; then
    exec "$python" -B -m unittest discover --pattern '*_test.py'
  fi
done
echo "skipped: no Python here has numpy, pandas, matplotlib and yaml"
exit 77

#!/usr/bin/env bash
# Installs Hearsay into a fresh prefix, then configures, builds and runs a program that knows nothing but that prefix.
# Usage: package_test.sh CMAKE BUILD_DIR WORK_DIR MPIRUN [MPIRUN_ARGUMENTS…]
set -euo pipefail
cmake=$1 build=$2 work=$3 mpirun=("${@:4}")
source=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
# A copy, so that nothing of the source tree is found by accident.
cp "$source/CMakeLists.txt" "$source/stripes.cpp" "$work"
lines=$(wc -l <"$work/stripes.cpp")
[[ $lines -le 40 ]] || { echo "stripes.cpp has $lines lines; it is there to show that 40 are enough"; exit 1; }
"$cmake" -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix;${CMAKE_PREFIX_PATH:-}"
"$cmake" --build "$work/build"
"${mpirun[@]}" "$work/build/stripes" "$work/run"
[[ -s $work/run/summary.json ]] || { echo "no $work/run/summary.json"; exit 1; }
grep -A1 '^model:' "$work/run/config.yaml" | grep -q 'name: net$' || { echo "config.yaml does not name the model"; exit 1; }
grep -q '"command": ".*stripes' "$work/run/manifest.json" || { echo "manifest.json does not name the program"; exit 1; }

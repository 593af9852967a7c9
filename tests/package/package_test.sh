#!/usr/bin/env bash
# Installs Hearsay into a fresh prefix, then configures, builds and runs a program that knows nothing but that prefix,
# and that has folders named like Hearsay's.
# Usage: package_test.sh CMAKE BUILD_DIR WORK_DIR MPIRUN [MPIRUN_ARGUMENTS…]
set -euo pipefail
cmake=$1 build=$2 work=$3 mpirun=("${@:4}")
source=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
include=$work/prefix/include

# Nothing of ours lies bare on a user's include path, and our headers name each other by the names that they have there.
[[ $(ls "$include") == hearsay ]] || { echo "the prefix's include/ has more than hearsay/: $(ls "$include")"; exit 1; }
headers=$(cd "$include/hearsay" && find . -name '*.hpp' | sed 's,^\./,,')
[[ $(wc -l <<<"$headers") -gt 50 ]] || { echo "hardly any headers were installed: $headers"; exit 1; }
grep -rhoE '^ *# *include "[^"]+"' "$include" | grep -oE '[^"]+\.[a-z]+' | sort -u | while read -r name; do
  [[ $name == hearsay/* && -f $include/$name ]] ||
    { echo "an installed header includes \"$name\", which is not there"; exit 1; }
done

# A copy, so that nothing of the source tree is found by accident; with files of a user's that our headers must not
# find.
cp "$source/CMakeLists.txt" "$work"
for header in $headers; do
  mkdir -p "$work/$(dirname "$header")"
  echo "#error a header of Hearsay's includes the user's $header" >"$work/$header"
done
echo '#define OWN_RUNTIME' >"$work/runtime/own.hpp"
cp "$source/stripes.cpp" "$work"
lines=$(wc -l <"$work/stripes.cpp")
[[ $lines -le 40 ]] || { echo "stripes.cpp has $lines lines; it is there to show that 40 are enough"; exit 1; }
printf '#include "runtime/own.hpp"\n#ifndef OWN_RUNTIME\n#error not ours\n#endif\n' | cat - "$source/stripes.cpp" \
  >"$work/stripes.cpp"
"$cmake" -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-I$work" \
  -DCMAKE_PREFIX_PATH="$work/prefix;${CMAKE_PREFIX_PATH:-}"
"$cmake" --build "$work/build"
"${mpirun[@]}" "$work/build/stripes" "$work/run"
[[ -s $work/run/summary.json ]] || { echo "no $work/run/summary.json"; exit 1; }
grep -A1 '^model:' "$work/run/config.yaml" | grep -q 'name: net$' ||
  { echo "config.yaml does not name the model"; exit 1; }
grep -q '"command": ".*stripes' "$work/run/manifest.json" || { echo "manifest.json does not name the program"; exit 1; }

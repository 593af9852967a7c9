#!/usr/bin/env bash
# What scripts/quickstart finds out before it installs, builds or trains anything. In a copy of the scripts, with
# programs of the test's own on the PATH.
#   ready_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed() { echo "FAILED: $*"; exit 1; }
mkdir -p "$folder/a tree/bin"
cp -r "$source_dir/scripts" "$folder/a tree"
cd "$folder/a tree"

# stops CODE TEXT COMMAND…: it ends with this code within 30 s, says this, and has begun no build.
stops() {
  local code=$1 text=$2 got=0
  shift 2
  timeout 30 env -u HEARSAY_DATA "$@" >"$folder/out" 2>&1 </dev/null || got=$?
  [[ $got -eq $code ]] || failed "$* ended with $got instead of $code: $(cat "$folder/out")"
  grep -qF -- "$text" "$folder/out" || failed "$* does not say '$text': $(cat "$folder/out")"
  [[ $(cat "$folder/out") != *"==> Building"* ]] || failed "$* builds: $(cat "$folder/out")"
  echo "passed: $text"
}
# plays NAME TEXT: a program of that name, found first.
plays() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1" && chmod +x "bin/$1"; }
begin=(env PATH="$PWD/bin:$PATH" scripts/quickstart --no-install)
plays cmake 'echo "cmake version 3.25.1"'

stops 2 "whole number" "${begin[@]}" --ranks two
stops 3 "has no train-images-idx3-ubyte; fetch it: scripts/get-data mnist" env HEARSAY_DATA="$folder/none" "${begin[@]}"
plays df 'printf "head\n/dev/x 9 9 120 99%% /\n"'
stops 3 "has 120 MB free, building takes up to 1500 MB" "${begin[@]}"
rm bin/df
plays awk 'case $* in *MemAvailable*) echo 900 ;; *) exec /usr/bin/awk "$@" ;; esac'
stops 3 "900 MB of memory are free, compiling takes 2000 MB" "${begin[@]}"
rm bin/awk
plays cmake 'echo "cmake version 3.18.4"'
stops 3 "cmake is 3.18, needed is 3.25 or newer" "${begin[@]}"
plays cmake 'echo "cmake version 3.100.0"'
plays c++ 'case $* in *--version*) echo "c++ 8.3" ;; *) exit 1 ;; esac'
stops 3 "the compiler 'c++' (c++ 8.3) does not know C++20" "${begin[@]}"
rm bin/c++
plays mpirun 'echo "mpirun (Open MPI) 4.1.4"; echo "no slots on this planet" >&2; exit 1'
stops 3 "MPI cannot start 4 processes on this machine" "${begin[@]}"
grep -qF "no slots on this planet" "$folder/out" || failed "MPI's own words are lost: $(cat "$folder/out")"
rm bin/mpirun
mkdir -p build/release
echo "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else" >build/release/CMakeCache.txt
stops 3 "build/release was made for the sources in /somewhere/else, not for these" "${begin[@]}"
rm -r build
only=$folder/only # the few programs that the script itself needs
mkdir "$only"
for tool in bash dirname basename realpath df sed awk cat sort nproc timeout env; do
  ln -s "$(type -P $tool)" "$only"
done
stops 3 "cmake ninja c++ git mpicxx mpirun python3: not on the PATH" env PATH="$only" scripts/quickstart --no-install
stops 3 "this system has no apt" env PATH="$only" scripts/quickstart
if [[ $EUID -eq 0 ]] && command -v setpriv >/dev/null; then
  chmod -R a+rX "$folder"
  stops 3 "/build cannot be written" setpriv --reuid=65534 --clear-groups "${begin[@]}"
fi

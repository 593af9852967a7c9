# What this machine must have before ten minutes are spent on it. To be sourced after setup.sh. Each function ends the
# script with 3, and says what is missing and what to do, where something is.
# shellcheck shell=bash

# require_tree PRESET: what is written below the sources can be, and build/PRESET was not made for another folder.
require_tree() {
  local folder made_for
  for folder in build runs; do
    [[ -w $root/$folder || (! -e $root/$folder && -w $root) ]] ||
      fail 3 "$root/$folder cannot be written; work in a copy of the sources that is yours"
  done
  made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$root/build/$1/CMakeCache.txt" 2>/dev/null) || made_for=''
  [[ -z $made_for || $made_for -ef $root ]] ||
    fail 3 "build/$1 was made for the sources in $made_for, not for these; remove it: rm -r $root/build/$1"
}

# require_space FOLDER MB WHAT: so much is free where FOLDER is.
require_space() {
  local free
  free=$(df -Pm -- "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
  [[ ${free:-$2} -ge $2 ]] || fail 3 "$1 has $free MB free, $3 takes up to $2 MB; make room"
}

# require_memory MB: for one compiler.
require_memory() {
  [[ $(memory_mb) -ge $1 ]] ||
    fail 3 \
      "$(memory_mb) MB of memory are free, compiling takes $1 MB; end other programs, or raise the container's limit"
}

# require_tools: what builds and starts, by the names of their programs, and C++20.
require_tools() {
  local tool version cxx=${CXX:-c++} missing=()
  for tool in cmake ninja "$cxx" git mpicxx mpirun python3; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  [[ ${#missing[@]} -eq 0 ]] ||
    fail 3 "${missing[*]}: not on the PATH; without --no-install this script installs what Debian has"
  version=$(cmake --version | sed -nE 's/^cmake version ([0-9]+\.[0-9]+).*/\1/p')
  printf '3.25\n%s\n' "$version" | sort -CV || fail 3 "cmake is $version, needed is 3.25 or newer"
  "$cxx" -std=c++20 -fsyntax-only -x c++ - <<<$'#include <ranges>\n#include <span>\nenum class E { a };
    using enum E;' 2>/dev/null ||
    fail 3 "the compiler '$cxx' ($("$cxx" --version | head -n 1)) does not know C++20; set CXX to GCC 12 or newer"
}

# require_limits N: what mpirun needs for N processes here: open files, which are asked for, and a folder for its own.
require_limits() {
  local folder=${TMPDIR:-/tmp} files=$((64 + 10 * $1))
  [[ $(ulimit -n) == unlimited || $(ulimit -n) -ge $files ]] || ulimit -n "$files" 2>/dev/null ||
    fail 3 "this shell may open $(ulimit -n) files, $1 processes take up to $files; raise it: ulimit -n $files"
  [[ -d $folder && -w $folder ]] ||
    fail 3 "$folder, the folder for temporary files, is not there or cannot be written; set TMPDIR to one that can"
  require_space "$folder" 10 "what MPI keeps there"
}

# require_ranks N: MPI can start them here, now.
require_ranks() {
  local words
  words=$(timeout 60 "$root/scripts/launch" -n "$1" true 2>&1) ||
    fail 3 "MPI cannot start $1 processes on this machine: ${words:-no answer in 60 s}"
}

# require_mnist FOLDER: its four files, packed or not.
require_mnist() {
  local name
  for name in {train,t10k}-{images-idx3,labels-idx1}-ubyte; do
    [[ -r $1/$name || -r $1/$name.gz ]] ||
      fail 3 "HEARSAY_DATA is set, but $1 has no $name; fetch it: scripts/get-data mnist ${1%/mnist}"
  done
}

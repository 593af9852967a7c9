#!/usr/bin/env bash
# The arrows of docs/architecture.md: fails if a file includes what its folder must not know, or if an algorithm's table
# entry, its file and its name differ. Usage: includes_test.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

# What a folder may include of ours: the first row whose left side matches the file decides. Extended regular expressions.
ours='
^runtime/base/       ^runtime/base/
^runtime/cuda/       ^runtime/(base|cuda)/
^trigger/cuda/       ^(trigger|runtime/(base|cuda))/
^sparsify/cuda/      ^(sparsify|runtime/(base|cuda))/
^topology/           ^(topology|runtime/base)/
^trigger/            ^(trigger|runtime/base)/
^sparsify/           ^(sparsify|runtime/base)/
^runtime/hearsay.hpp ^runtime/
^runtime/training/   ^((runtime|topology|trigger|sparsify)/|hearsay_version.hpp$)
^runtime/            ^(runtime/([a-z_]+\.hpp|(base|mpi|cuda|device|mailbox|ledger|algorithms|collectives|report|data|cost)/)|(topology|trigger|sparsify)/)
^apps/datasets/      ^(runtime/(base|data)|apps/datasets)/
^apps/models/        ^(runtime/(base|data|training)|apps/models)/
^apps/               ^((runtime|topology|trigger|sparsify|apps)/|hearsay_version.hpp$)
^tests/package/      ^hearsay/
^tests/              ^(runtime|topology|trigger|sparsify|apps|tests)/
'

# Who may include what is not ours (or hides LibTorch): header, then file. What no row names is free.
libtorch='^(runtime/training/|apps/models/|apps/hearsay/(train|chosen_run)\.cpp|apps/(bench|examples)/|tests/(training|models|package)/)'
others="
^mpi\.h$                                                       ^runtime/mpi/((check|waiting|real/polite_flush)\.hpp|((real|simulated)/)?[a-z_]+\.cpp)$
^simgrid/                                                      ^runtime/mpi/simulated/[a-z_]+\.cpp$
^torch/version\.h$                                             ^(runtime/training|apps/hearsay)/[a-z_]+\.cpp$
^(torch|c10|ATen|caffe2)/                                      $libtorch
^runtime/training/(model|batches|evaluator|set_up)\.hpp$       $libtorch|^runtime/hearsay\.hpp$
^(cuda|cub/|thrust/|nvtx|curand|cublas)                        (\.cu$|\.cuh$|^runtime/cuda/)
^boost/[a-z_]+/                                                ^(topology|tests/topology|runtime/mailbox)/
^(boost/graph/|Eigen/)                                         ^(topology|tests/topology)/
^boost/lockfree/                                               ^runtime/mailbox/
^boost/crc\.hpp$                                               ^(runtime|tests)/report/
^(google/protobuf/|event\.pb\.h$)                              ^runtime/report/events/protobuf/|^tests/report/
^yaml-cpp/                                                     ^runtime/base/
^nlohmann/                                                     ^(runtime/(report|training)|apps/(hearsay|bench)|tests)/
^(zlib|lzma)\.h$                                               ^(apps/datasets|tests/data)/
^CLI/                                                          ^apps/(hearsay|simulator|bench|examples)/
^benchmark/                                                    ^apps/bench/
^(doctest/|rapidcheck)                                         ^tests/
"

# "FILE:LINE <header>" or 'FILE:LINE "header"' of every #include.
includes() {
  grep -rnoE --include=*.cpp --include=*.hpp --include=*.cu --include=*.cuh '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]' \
    runtime topology trigger sparsify apps tests |
    sed -E 's/^([^:]+:[0-9]+):.*([<"][^<>"]+[>"])$/\1 \2/'
}

wrong_arrows() {
  OURS=$ours OTHERS=$others awk '
    function table(text, left, right,    lines, i, n, parts) {
      n = split(text, lines, "\n"); count = 0
      for (i = 1; i <= n; ++i) if (split(lines[i], parts, " ") == 2) { left[++count] = parts[1]; right[count] = parts[2] }
      return count
    }
    BEGIN { own_rows = table(ENVIRON["OURS"], folder, may); other_rows = table(ENVIRON["OTHERS"], restricted, by) }
    {
      file = $1; sub(/:[0-9]+$/, "", file); header = substr($2, 2, length($2) - 2); ++seen
      is_ours = header ~ /^(runtime|topology|trigger|sparsify|apps|tests)\// || substr($2, 1, 1) == "\""
      if (is_ours)
        for (i = 1; i <= own_rows; ++i) if (file ~ folder[i]) {
          if (header !~ may[i]) print $1 ": includes " header "; this folder may include " may[i] " only"
          break
        }
      for (i = 1; i <= other_rows; ++i) if (header ~ restricted[i]) {
        if (file !~ by[i]) print $1 ": includes " header ", which only " by[i] " may"
        break
      }
    }
    END { if (seen < 100) print "only " seen " #includes found: this test does not see the sources" }'
}

# Every file in FOLDER with a table entry is listed in TABLE, and its entry has the file's name.
check_table() {
  local table=$1 folder file name maker entries=0
  shift
  for folder in "$@"; do
    for file in "$folder"/*.cpp; do
      for maker in $(sed -nE 's/^[A-Z][A-Za-z]*Entry ([a-z0-9_]+)\(\) \{.*/\1/p' "$file"); do
        entries=$((entries + 1))
        name=$(sed -nE "/ $maker\(\) \{/,/^}/s/.*\.name = \"([^\"]+)\".*/\1/p" "$file" | head -n 1)
        # One file may hold a family: resnet.cpp has resnet18 and resnet20.
        [[ $name == "$(basename "$file" .cpp)"* && $maker == "$name"_* ]] ||
          printf '%s: the entry %s() is named "%s"; file, function and name must agree\n' "$file" "$maker" "$name"
        [[ $(grep -oE "\b$maker\(\)" "$table" | wc -l) -ge 2 ]] || printf '%s: %s() is not in %s\n' "$file" "$maker" "$table"
      done
    done
  done
  [[ $entries -gt 0 ]] || printf '%s: no entry found for it in %s\n' "$table" "$*"
}

complaints=$(
  includes | wrong_arrows
  check_table topology/table.cpp topology/graphs topology/weights
  check_table trigger/table.cpp trigger/policies
  check_table sparsify/table.cpp sparsify/selectors sparsify/codecs sparsify/quantisers
  check_table runtime/algorithms/table.cpp runtime/algorithms/neighbour
  check_table runtime/algorithms/neighbour/mixing/table.cpp runtime/algorithms/neighbour/mixing
  check_table runtime/data/partition.cpp runtime/data/partitions
  check_table apps/datasets/table.cpp apps/datasets
  check_table apps/models/table.cpp apps/models
)
if [[ -n $complaints ]]; then
  printf '%s\n' "$complaints"
  exit 1
fi
echo "all includes and table entries are as they should be"

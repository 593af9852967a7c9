// Merging two sparse vectors, and cutting the sum to k: every step of gTop-k's tree.
#include "apps/bench/between_ranks/oracle.hpp"
#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/suite.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {
namespace {

constexpr std::size_t merged_block = 25'000'000, merged_entries = 25'000;

void merge_and_cut(benchmark::State& state) {
  const SparseVector a = normal_entries(1, 0, merged_block, merged_entries),
                     b = normal_entries(1, 1, merged_block, merged_entries);
  Truncation truncation;  // keeps its memory, as in training
  for (auto _ : state) {
    SparseVector merged = sum(a, b);
    SparseVector rest = truncation.keep_largest(merged, merged_entries);
    benchmark::DoNotOptimize(merged.values.data());
    benchmark::DoNotOptimize(rest.values.data());
  }
}

void merge_alone(benchmark::State& state) {
  const SparseVector a = normal_entries(1, 0, merged_block, merged_entries),
                     b = normal_entries(1, 1, merged_block, merged_entries);
  for (auto _ : state) {
    SparseVector merged = sum(a, b);
    benchmark::DoNotOptimize(merged.values.data());
  }
}

}  // namespace

void add_merging(std::vector<Kernel>& kernels) {
  kernels.push_back({.name = "merge_and_cut/25000",
                     .work = merge_and_cut,
                     .floor = "copy/1e5",
                     .target = {Target::Kind::seconds_at_most, 0.5e-3}});
  kernels.push_back({.name = "merge/25000", .work = merge_alone, .floor = "copy/1e5"});
}

}  // namespace hearsay

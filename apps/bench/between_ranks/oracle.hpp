#pragma once
// What collectives must give, computed by sorting instead of merging, so that it shares no code with what it checks.
// Values are whole numbers, of which every sum is exact: equal means equal. What is wrong is a std::logic_error that
// names algorithm and rank.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {

/// k random positions below m with normal values: the same for the same seed and rank, wherever it is called.
SparseVector normal_entries(std::uint64_t seed, int rank, std::size_t m, std::size_t k);
/// The same with whole numbers in [−4096, 4096] without 0, at positions out of only 2k that all ranks share (spread
/// over m): so there is much to add, to cut off and to cancel out.
SparseVector whole_entries(std::uint64_t seed, int rank, std::size_t m, std::size_t k);

/// Σ of all entries; positions whose sum is zero are left out.
SparseVector exact_sum(std::span<const SparseVector> vectors);
/// The k entries of largest magnitude, ties by lower position.
SparseVector exact_largest(const SparseVector& all, std::size_t k);

void require_dense(std::string_view algorithm, int rank, std::span<const float> got, const SparseVector& expected);
void require_sparse(std::string_view algorithm, int rank, const SparseVector& got, const SparseVector& expected);

/// What a truncating sum leaves on every rank.
struct TruncatedSums {
  std::vector<SparseVector> results, returned;  ///< by rank
};
/// All ranks have the same result, of at most k entries, and result + Σ returned = Σ contributions. For two ranks,
/// whose only merge is the last one, the result is the exact one.
void require_truncated(std::string_view algorithm, const TruncatedSums& got,
                       std::span<const SparseVector> contributions, std::size_t k);

}  // namespace hearsay

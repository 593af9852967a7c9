#pragma once
// The k values of largest magnitude, exactly, without sorting.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sparsify/search/candidates.hpp"
#include "sparsify/search/radix_band.hpp"

namespace hearsay {

/// How: a sample of 1/512 of the values suggests a magnitude that somewhat more than k of them reach; one pass collects
/// those, and the k largest of them are the k largest of all. The suggestion is wrong once in ten thousand calls, or
/// for odd data; then RadixBand finds a band that cannot be wrong. Short runs are candidates as a whole.
/// Cost: 1 read of the values and 1/512 of them at random; 2 reads more where the sample misled. 8 bytes a candidate.
class ExactSelect {
 public:
  /// indices ← the first k positions by (|x_i| descending, i ascending), written ascending. Throws DivergenceError
  /// (position and value) if a value is not finite.
  void largest(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices);
  /// candidates ← all values of some magnitude or more; they are k or more. 1 ≤ k ≤ values.size().
  void gather(std::span<const float> values, std::size_t k, Candidates& candidates);

  /// How many candidates of k in n values there are at most, but where the sample misleads.
  static std::size_t most_candidates(std::size_t k, std::size_t n);
  /// How many of n values are looked at first, and the s-th of them: one of every stretch of equal length, not always
  /// the same column of a matrix.
  static std::size_t sample_size(std::size_t n);
  static std::size_t sample_position(std::size_t n, std::size_t s);

 private:
  std::int32_t suggestion(std::span<const float> values, std::size_t k);

  RadixBand radix_;
  Candidates candidates_;
  std::vector<std::int32_t> sample_;
};

}  // namespace hearsay

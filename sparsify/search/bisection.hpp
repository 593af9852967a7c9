#pragma once
// The bisection of `mstopk` for a threshold, step by step: the processor and a device count, and both move so.
#include <cstdint>
#include <limits>

#include "base/random.hpp"
#include "sparsify/searches.hpp"

namespace hearsay {

/// Thresholds around the k-th largest magnitude, and how many values lie at or above each.
struct Bracket {
  float upper = std::numeric_limits<float>::infinity();
  float lower = 0.0F;
  std::uint32_t from_upper = 0;  // ≤ k
  std::uint32_t from_lower = 0;  // ≥ k
};

/// The range that holds the threshold, at first from the magnitudes' mean to their maximum.
struct Halving {
  double low, high;

  constexpr double middle() const { return (low + high) / 2; }
  constexpr Halving half(bool upper) const { return upper ? Halving{middle(), high} : Halving{low, middle()}; }
};

struct Bisection {
  Halving range;
  Bracket bracket;
  std::uint32_t steps;  // that are left

  /// No later step can change anything once the count is k.
  constexpr bool done(std::uint32_t k) const { return steps == 0 || bracket.from_upper == k; }
  /// After a count of the values from the middle up; returns whether the upper half goes on.
  constexpr bool take(std::uint32_t count, std::uint32_t k) {
    const auto threshold = static_cast<float>(range.middle());
    const bool upper = count > k;
    if (upper)
      bracket.lower = threshold, bracket.from_lower = count;
    else
      bracket.upper = threshold, bracket.from_upper = count;
    range = range.half(upper);
    --steps;
    return upper;
  }
};

/// What of the band between the thresholds makes up k: the ranks [first, first + count) by position.
struct Slice {
  std::uint32_t first, count;
};
constexpr Slice slice_of(const Bracket& bracket, std::uint32_t k, const Draws& draws) {
  const std::uint32_t missing = k - bracket.from_upper;
  const std::uint64_t places = std::uint64_t{bracket.from_lower} - bracket.from_upper - missing + 1;
  for (const std::uint64_t draw : draws)
    if (draw < usable_below(places)) return {static_cast<std::uint32_t>(draw % places), missing};
  return {0, missing};
}

}  // namespace hearsay

#pragma once
// The two halves of a group, apart by value: what levels are the means of.
#include <array>
#include <cstddef>
#include <span>

namespace hearsay {

/// Sums and counts of magnitudes on two sides.
struct Sides {
  std::array<double, 2> sums{};
  std::array<double, 2> counts{};
  /// The mean of its magnitudes; a side without values has none (0/0).
  double mean(std::size_t side) const { return sums[side] / counts[side]; }
};

/// Side 1: values below `low` or above `high`; side 0: the others. One read pass; the order of the additions is the
/// same on every processor.
Sides sum_sides(std::span<const float> values, double low, double high);

}  // namespace hearsay

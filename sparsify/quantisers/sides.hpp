#pragma once
// The two halves of a group, apart by value: what levels are the means of.
//
// Sums have one order, which the processor and a GPU both keep, so that levels have the same bits:
//   a group is cut, from its first value on, into pieces of 8192, a piece into 32 runs of 256, a run into 16 lanes
//   partial sum t = 16 run + lane of a piece has its values 256 run + lane + 16 j, j = 0 … 15, one after the other
//   the 512 partial sums are added in pairs, t and t + 256, then t and t + 128, … down to one
//   the sum of piece p is added to partial sum p mod 512 of the group, in order; these then in pairs likewise
#include <array>
#include <cstddef>
#include <span>

#include "sparsify/quantisers/rounding.hpp"

namespace hearsay {

constexpr std::size_t partial_sums = 512;
constexpr std::size_t sum_lanes = 16;
constexpr std::size_t values_of_partial_sum = 16;
constexpr std::size_t values_of_run = sum_lanes * values_of_partial_sum;
constexpr std::size_t values_of_piece = partial_sums * values_of_partial_sum;

/// Where in its piece the j-th value of partial sum t is.
constexpr std::size_t place_in_piece(std::size_t t, std::size_t j) {
  return t / sum_lanes * values_of_run + t % sum_lanes + sum_lanes * j;
}

/// Sums and counts of magnitudes on two sides.
struct Sides {
  std::array<double, 2> sums;
  std::array<double, 2> counts;
  /// The mean of its magnitudes; a side without values has none (0/0).
  constexpr double mean(std::size_t side) const { return sums[side] / counts[side]; }
};

/// Which side a value is on: 1 below `low` or above `high`, else 0.
constexpr std::size_t side_of(float value, double low, double high) { return value < low || value > high ? 1 : 0; }

/// Both sides of these values. One read pass.
Sides sum_sides(std::span<const float> values, double low, double high);

/// The mean of a side as it is sent; 0 without values.
constexpr float mean_level(const Sides& sides, std::size_t side) {
  return sides.counts[side] == 0.0 ? 0.0F : level(sides.mean(side));
}

// two_bit: two centres, and a boundary halfway, which begins at the mean of all and is moved so often.
constexpr int boundary_moves = 4;
struct Centres {
  double low, high;
  constexpr double boundary() const { return (low + high) / 2; }
};
/// The means of both sides, of which at least one has values; a side without is as the other.
constexpr Centres centres_of(const Sides& sides) {
  return {sides.mean(sides.counts[0] > 0.0 ? 0 : 1), sides.mean(sides.counts[1] > 0.0 ? 1 : 0)};
}
constexpr Centres as_sent(const Centres& centres) { return {level(centres.low), level(centres.high)}; }

}  // namespace hearsay

#include "sparsify/quantisers/sides.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/loops/vector_code.hpp"

namespace hearsay {
namespace {

/// Four doubles as a vector, whose comparisons give a mask and which `? :` selects by: compilers make jumps of the
/// plain form, and the side of a value cannot be foretold.
using Doubles [[gnu::vector_size(32)]] = double;
using Longs [[gnu::vector_size(32)]] = std::int64_t;
using Floats [[gnu::vector_size(16)]] = float;
constexpr std::size_t doubles_in_vector = 4;
constexpr std::size_t vectors = sum_lanes / doubles_in_vector;

/// Partial sums of one side each.
struct PartialSums {
  std::array<double, partial_sums> side[2];
};

/// sums[side][lane] ← those of a run of up to 256 values; returns how many are on side 1.
[[gnu::always_inline]] inline double sum_run(std::span<const float> values, double low, double high,
                                             std::array<double*, 2> sums) {
  const Doubles zero{}, least = zero + low, most = zero + high;
  Doubles first[vectors]{}, second[vectors]{};
  Longs count{};
  const std::size_t whole = values.size() - values.size() % sum_lanes;
  for (std::size_t i = 0; i < whole; i += sum_lanes) {
    for (std::size_t v = 0; v < vectors; ++v) {
      Floats floats;
      std::memcpy(&floats, values.data() + i + v * doubles_in_vector, sizeof floats);
      const Doubles value = __builtin_convertvector(floats, Doubles);
      const Doubles magnitude = value < zero ? -value : value;
      const auto on_second = (value < least) | (value > most);
      first[v] += on_second ? zero : magnitude;
      second[v] += on_second ? magnitude : zero;
      count -= on_second;  // a mask is −1
    }
  }
  std::memcpy(sums[0], first, sizeof first);
  std::memcpy(sums[1], second, sizeof second);
  auto seconds = static_cast<double>(count[0] + count[1] + count[2] + count[3]);
  for (std::size_t lane = 0; whole + lane < values.size(); ++lane) {
    const float value = values[whole + lane];
    const std::size_t side = side_of(value, low, high);
    sums[side][lane] += std::abs(value);
    seconds += static_cast<double>(side);
  }
  return seconds;
}

/// The sum of all, in pairs; partial sums that are not there count as 0.
[[gnu::always_inline]] inline double sum_in_pairs(std::span<double> sums) {
  std::size_t used = sums.size();
  if (used == 0) return 0.0;
  for (std::size_t width = std::bit_ceil(used) / 2; width > 0; width /= 2) {
    for (std::size_t t = 0; t + width < used; ++t) sums[t] += sums[t + width];
    used = std::min(used, width);
  }
  return sums[0];
}

/// `values`: 1 to 8192 of them.
[[gnu::always_inline]] inline Sides sum_piece(std::span<const float> values, double low, double high) {
  PartialSums sums;
  std::size_t used = 0;
  double seconds = 0.0;
  for (auto rest = values; !rest.empty(); used += sum_lanes) {
    const auto run = rest.first(std::min(values_of_run, rest.size()));
    seconds += sum_run(run, low, high, {sums.side[0].data() + used, sums.side[1].data() + used});
    rest = rest.subspan(run.size());
  }
  return {{sum_in_pairs(std::span(sums.side[0]).first(used)), sum_in_pairs(std::span(sums.side[1]).first(used))},
          {static_cast<double>(values.size()) - seconds, seconds}};
}

/// `values`: at most one a lane.
Sides sum_few(std::span<const float> values, double low, double high) {
  std::array<double, sum_lanes> sums[2]{};
  Sides sides{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t side = side_of(values[i], low, high);
    sums[side][i] = std::abs(values[i]);
    sides.counts[side] += 1.0;
  }
  for (std::size_t side = 0; side < 2; ++side)
    sides.sums[side] = sum_in_pairs(std::span(sums[side]).first(values.size()));
  return sides;
}

}  // namespace

Sides sum_sides(std::span<const float> values, double low, double high) {
  const auto piece = [&](std::size_t first) {
    const auto part = values.subspan(first, std::min(values_of_piece, values.size() - first));
    return in_vector_code([&]() __attribute__((always_inline)) { return sum_piece(part, low, high); });
  };
  if (values.size() <= sum_lanes) return sum_few(values, low, high);
  if (values.size() <= values_of_piece) return piece(0);
  PartialSums sums{};
  Sides all{};
  for (std::size_t first = 0, p = 0; first < values.size(); first += values_of_piece, ++p) {
    const Sides one = piece(first);
    for (std::size_t side = 0; side < 2; ++side) {
      sums.side[side][p % partial_sums] += one.sums[side];
      all.counts[side] += one.counts[side];
    }
  }
  for (std::size_t side = 0; side < 2; ++side) all.sums[side] = sum_in_pairs(sums.side[side]);
  return all;
}

}  // namespace hearsay

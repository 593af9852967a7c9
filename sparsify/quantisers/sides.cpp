#include "sparsify/quantisers/sides.hpp"

#include <cmath>
#include <cstring>

#include "base/loops/vector_code.hpp"

namespace hearsay {
namespace {

/// Four doubles as a vector, whose comparisons give a mask and which `? :` selects by: compilers make jumps of the
/// plain form, and the side of a value cannot be foretold.
using Doubles [[gnu::vector_size(32)]] = double;
using Floats [[gnu::vector_size(16)]] = float;
constexpr std::size_t doubles_in_vector = 4;

double total(const Doubles& x) { return (x[0] + x[1]) + (x[2] + x[3]); }

/// Sums as many values as are a multiple of `doubles_in_vector`.
[[gnu::always_inline]] inline Sides sum_in_lanes(std::span<const float> values, double low, double high) {
  const Doubles zero{}, one = zero + 1.0, least = zero + low, most = zero + high;
  Doubles first{}, second{}, count{};
  for (std::size_t i = 0; i < values.size(); i += doubles_in_vector) {
    Floats floats;
    std::memcpy(&floats, values.data() + i, sizeof floats);
    const Doubles value = __builtin_convertvector(floats, Doubles);
    const Doubles magnitude = value < zero ? -value : value;
    const auto on_second = (value < least) | (value > most);
    first += on_second ? zero : magnitude;
    second += on_second ? magnitude : zero;
    count += on_second ? one : zero;
  }
  const double seconds = total(count);
  return {{total(first), total(second)}, {static_cast<double>(values.size()) - seconds, seconds}};
}

}  // namespace

Sides sum_sides(std::span<const float> values, double low, double high) {
  const std::size_t whole = values.size() - values.size() % doubles_in_vector;
  Sides rest;
  for (const float value : values.subspan(whole)) {
    const std::size_t side = value < low || value > high ? 1 : 0;
    rest.sums[side] += std::abs(value);
    rest.counts[side] += 1.0;
  }
  const Sides sides =
      in_vector_code([&]() __attribute__((always_inline)) { return sum_in_lanes(values.first(whole), low, high); });
  return {{rest.sums[0] + sides.sums[0], rest.sums[1] + sides.sums[1]},
          {rest.counts[0] + sides.counts[0], rest.counts[1] + sides.counts[1]}};
}

}  // namespace hearsay

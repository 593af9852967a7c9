#pragma once
// What quantisers with shared levels have in common: walking groups, packing bits, reading levels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "sparsify/bytes.hpp"
#include "sparsify/quantisers/rounding.hpp"

namespace hearsay {

/// Calls `visit(group, first, end)` for values [first, end) of each group.
template <class Visit>
void for_each_group(std::span<const std::size_t> group_ends, Visit visit) {
  std::size_t first = 0;
  for (std::size_t group = 0; group < group_ends.size(); ++group) {
    visit(group, first, group_ends[group]);
    first = group_ends[group];
  }
}

inline bool bit_at(std::span<const std::byte> bits, std::size_t i) {
  return ((bits[i / 8] >> (i % 8)) & std::byte{1}) != std::byte{0};
}

/// Writes code(i), of Width bits, as the i-th field of `bits` for i in [first, end); all bits there must have been 0. A
/// byte is put together before it is stored.
template <unsigned Width, class Code>
void pack(std::span<std::byte> bits, std::size_t first, std::size_t end, Code code) {
  constexpr std::size_t fields = 8 / Width;  // of a byte
  while (first < end) {
    const std::size_t in_byte = first % fields, stop = std::min(end, first - in_byte + fields);
    unsigned byte = 0;
    for (std::size_t i = first; i < stop; ++i) byte |= static_cast<unsigned>(code(i)) << (Width * (i % fields));
    bits[first / fields] |= static_cast<std::byte>(byte);
    first = stop;
  }
}

/// Sums and counts of magnitudes on two sides.
struct Sides {
  std::array<double, 2> sums{};
  std::array<double, 2> counts{};
  double mean(std::size_t side) const { return sums[side] / counts[side]; }
};

/// Two doubles as a vector, whose comparisons give a mask and which `? :` selects by: compilers make jumps of the plain
/// form, and the side of a value cannot be foretold.
using Pair [[gnu::vector_size(16)]] = double;

/// `second(values)`: which of a Pair are on the second side. Summed in four lanes, which need not wait for each other.
template <class Second>
Sides sum_sides(std::span<const float> values, Second second) {
  constexpr Pair zero{0.0, 0.0}, one{1.0, 1.0};
  std::array<Pair, 2> firsts{}, seconds{}, counts{};
  const auto add = [&](std::size_t lane, Pair value) {
    const Pair magnitude = value < zero ? -value : value;
    const auto on_second = second(value);
    firsts[lane] += on_second ? zero : magnitude;
    seconds[lane] += on_second ? magnitude : zero;
    counts[lane] += on_second ? one : zero;
  };
  const std::size_t n = values.size(), whole = n - n % 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    add(0, Pair{values[i], values[i + 1]});
    add(1, Pair{values[i + 2], values[i + 3]});
  }
  Sides sides;
  for (std::size_t i = whole; i < n; ++i) {
    const std::size_t side = second(Pair{values[i], values[i]})[0] != 0 ? 1 : 0;
    sides.sums[side] += std::abs(values[i]);
    sides.counts[side] += 1.0;
  }
  const auto total = [](const std::array<Pair, 2>& x) { return (x[0][0] + x[0][1]) + (x[1][0] + x[1][1]); };
  sides.sums[0] += total(firsts);
  sides.sums[1] += total(seconds);
  sides.counts[0] += static_cast<double>(whole) - total(counts);
  sides.counts[1] += total(counts);
  return sides;
}

/// A level as it came. Throws CommunicationError unless it is finite and not negative.
inline float load_level(std::span<const std::byte> bytes, std::size_t at, const char* quantiser, std::size_t count) {
  const auto x = load<float>(bytes, at);
  if (!(x >= 0.0F && x <= std::numeric_limits<float>::max()))
    refuse_values(quantiser, count, "a level of " + std::to_string(x));
  return x;
}

/// Throws CommunicationError unless as many bytes came as these values take.
inline void require_bytes(const char* quantiser, std::size_t count, std::size_t expected, std::size_t came) {
  if (came != expected)
    refuse_values(quantiser, count, std::to_string(came) + " bytes instead of " + std::to_string(expected));
}

}  // namespace hearsay

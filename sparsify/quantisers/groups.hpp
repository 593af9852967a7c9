#pragma once
// What quantisers with shared levels have in common: walking groups, their largest value, packing bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/loops/vector_code.hpp"
#include "sparsify/bytes.hpp"
#include "sparsify/magnitude.hpp"
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

/// max |v|; 0 of no values. They are finite.
inline float largest_magnitude(std::span<const float> values) {
  return float_of(in_vector_code([=]() __attribute__((always_inline)) {
    std::int32_t most = 0;
    for (const float value : values) most = std::max(most, magnitude_bits(value));
    return most;
  }));
}

/// max |v| − min |v|; 0 of no values.
inline double range_of_magnitudes(std::span<const float> values) {
  double least = largest_magnitude(values);
  const double most = least;
  for (const float value : values) least = std::min(least, std::abs(static_cast<double>(value)));
  return most - least;
}

/// Writes code(i), of Width bits, as the i-th field of `bits` for i in [first, end); all bits there must have been 0. A
/// byte is put together before it is stored.
template <unsigned Width, class Code>
void pack(std::span<std::byte> bits, std::size_t first, std::size_t end, Code code) {
  constexpr std::size_t fields = 8 / Width;  // of a byte
  const auto byte_of = [&](std::size_t from, std::size_t to) {
    unsigned byte = 0;
    for (std::size_t i = from; i < to; ++i) byte |= static_cast<unsigned>(code(i)) << (Width * (i % fields));
    return static_cast<std::byte>(byte);
  };
  while (first < end) {
    const std::size_t stop = std::min(end, first - first % fields + fields);
    bits[first / fields] |= byte_of(first, stop);
    first = stop;
  }
}

/// values[i] ← levels[the i-th field of `bits`, of Width bits] for i in [first, end).
template <unsigned Width>
void unpack(std::span<const std::byte> bits, std::size_t first, std::size_t end,
            const std::array<float, std::size_t{1} << Width>& levels, std::span<float> values) {
  constexpr std::size_t fields = 8 / Width;  // of a byte
  for (std::size_t i = first; i < end; ++i) {
    const auto byte = static_cast<unsigned>(bits[i / fields]);
    values[i] = levels[byte >> (Width * (i % fields)) & ((1U << Width) - 1)];
  }
}

}  // namespace hearsay

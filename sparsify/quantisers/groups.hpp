#pragma once
// What quantisers with shared levels have in common: walking groups, packing bits, levels of few digits.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "sparsify/bytes.hpp"

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
inline void set_bit(std::span<std::byte> bits, std::size_t i) { bits[i / 8] |= std::byte{1} << (i % 8); }

// Levels have 12 significant bits of fp32's 24. With the rest, remainders v − q(v) of values of like size and sums over
// ranks have room for all their digits: rounding does not eat what the residual is to keep, and with small integers
// nothing is lost at all.
constexpr double level_digits = 4096.0;

/// x ≥ 0 rounded to 12 significant bits; finite.
inline float level(double x) {
  int exponent = 0;
  const double digits = std::nearbyint(level_digits * std::frexp(x, &exponent));
  return static_cast<float>(std::min(std::ldexp(digits / level_digits, exponent), 0x1.ffep127));
}
/// x ≥ 0, well below fp32's largest, rounded up to 12 significant bits.
inline float level_above(double x) {
  int exponent = 0;
  const double digits = std::ceil(level_digits * std::frexp(x, &exponent));
  const auto nearest = static_cast<float>(std::ldexp(digits / level_digits, exponent));  // rounds below 2^−126 only
  return nearest < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
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

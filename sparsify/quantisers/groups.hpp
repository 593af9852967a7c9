#pragma once
// What quantisers with shared levels have in common: walking groups, packing bits, reading levels.
#include <algorithm>
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
inline void set_bit(std::span<std::byte> bits, std::size_t i) { bits[i / 8] |= std::byte{1} << (i % 8); }

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

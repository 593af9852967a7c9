#pragma once
// Reading alone, at the speed of memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/loops/read_ahead.hpp"
#include "base/loops/vector_code.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay {

template <std::size_t Blocks>
[[gnu::always_inline]] inline std::int32_t largest_in_lanes(const std::array<const float*, Blocks>& blocks,
                                                            std::size_t n) {
  std::array<std::int32_t, cache_line> largest{};
  for (std::size_t i = 0; i + cache_line <= n; i += cache_line) {
    for (const float* block : blocks) {
      read_ahead(block + i);
      for (std::size_t l = 0; l < cache_line; ++l) largest[l] = std::max(largest[l], magnitude_bits(block[i + l]));
    }
  }
  return std::ranges::max(largest);
}

/// max |x|, as magnitude_bits, over blocks of n values that are read side by side (whole cache lines of them).
template <std::size_t Blocks>
std::int32_t largest_magnitude(const std::array<const float*, Blocks>& blocks, std::size_t n) {
  return in_vector_code([=]() __attribute__((always_inline)) { return largest_in_lanes(blocks, n); });
}

}  // namespace hearsay

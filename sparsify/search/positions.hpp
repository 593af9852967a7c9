#pragma once
// Runs of positions, as selectors and coders need them.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace hearsay {

/// positions ← {0, …, n − 1}.
void all_positions(std::size_t n, std::vector<std::uint32_t>& positions);

/// others ← the positions below n that are not in `positions`; both ascending.
void complement(std::span<const std::uint32_t> positions, std::size_t n, std::vector<std::uint32_t>& others);

/// Appends the positions of all values whose magnitude_bits are `least` or more. One read pass.
void collect_from(std::int32_t least, std::span<const float> values, std::vector<std::uint32_t>& positions);

/// A uniformly drawn k-subset of {0, …, n − 1}, ascending; the same where the random numbers are. About
/// 1.4 min(k, n − k) draws at most, on average; n bits of scratch, kept from call to call.
class PositionDraw {
 public:
  void draw(Random& random, std::size_t k, std::size_t n, std::vector<std::uint32_t>& positions);

 private:
  std::vector<bool> is_drawn_;
  std::vector<std::uint32_t> drawn_;
};

/// Throws std::logic_error unless k ≤ n < 2³².
void require_selectable(std::size_t k, std::size_t n);

}  // namespace hearsay

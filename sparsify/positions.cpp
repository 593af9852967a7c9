#include "sparsify/positions.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sparsify/magnitude.hpp"

namespace hearsay {

void all_positions(std::size_t n, std::vector<std::uint32_t>& positions) {
  positions.resize(n);
  std::iota(positions.begin(), positions.end(), 0U);
}

void complement(std::span<const std::uint32_t> positions, std::size_t n, std::vector<std::uint32_t>& others) {
  others.clear();
  others.reserve(n - positions.size());
  std::uint32_t next = 0;
  for (const std::uint32_t position : positions) {
    while (next < position) others.push_back(next++);
    next = position + 1;
  }
  while (next < n) others.push_back(next++);
}

void collect_from(std::int32_t least, std::span<const float> values, std::vector<std::uint32_t>& positions) {
  constexpr std::size_t block = 64;  // values that are looked at together: mostly none of them is kept
  const auto take = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (magnitude_bits(values[i]) >= least) positions.push_back(static_cast<std::uint32_t>(i));
    }
  };
  const std::size_t whole = values.size() - values.size() % block;
  for (std::size_t first = 0; first < whole; first += block) {
    std::int32_t hits = 0;
    for (std::size_t i = 0; i < block; ++i) hits += magnitude_bits(values[first + i]) >= least ? 1 : 0;
    if (hits > 0) take(first, first + block);
  }
  take(whole, values.size());
}

void require_selectable(std::size_t k, std::size_t n) {
  if (k <= n && n <= std::numeric_limits<std::uint32_t>::max()) return;
  throw std::logic_error("selector: " + std::to_string(k) + " of " + std::to_string(n) +
                         " values; positions have 32 bits, and no more can be kept than there are");
}

}  // namespace hearsay

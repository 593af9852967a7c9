#include "sparsify/search/positions.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sparsify/search/collect.hpp"

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

void PositionDraw::draw(Random& random, std::size_t k, std::size_t n, std::vector<std::uint32_t>& positions) {
  const std::size_t few = std::min(k, n - k);
  drawn_.clear();
  is_drawn_.assign(n, false);
  while (drawn_.size() < few) {
    const auto i = static_cast<std::uint32_t>(random.below(n));
    if (is_drawn_[i]) continue;
    is_drawn_[i] = true;
    drawn_.push_back(i);
  }
  std::sort(drawn_.begin(), drawn_.end());
  if (k == few)
    positions = drawn_;
  else
    complement(drawn_, n, positions);
}

void collect_from(std::int32_t least, std::span<const float> values, std::vector<std::uint32_t>& positions) {
  constexpr std::size_t piece = 4096;  // what is found in one stays in the nearest cache
  std::array<std::uint32_t, piece + EntryRoom::slack> found;
  std::array<std::int32_t, piece + EntryRoom::slack> magnitudes;
  const EntryRoom room{.positions = found.data(), .magnitudes = magnitudes.data(), .capacity = piece};
  for (std::size_t first = 0; first < values.size(); first += piece) {
    const std::size_t count = collect(values.subspan(first, std::min(piece, values.size() - first)), least, room);
    for (std::size_t i = 0; i < count; ++i) positions.push_back(static_cast<std::uint32_t>(first) + found[i]);
  }
}

void require_selectable(std::size_t k, std::size_t n) {
  if (k <= n && n <= std::numeric_limits<std::uint32_t>::max()) return;
  throw std::logic_error("selector: " + std::to_string(k) + " of " + std::to_string(n) +
                         " values; positions have 32 bits, and no more can be kept than there are");
}

}  // namespace hearsay

#include "runtime/replica/block_selection.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runtime/replica/finite.hpp"

namespace hearsay {

std::size_t BlockSelection::count(double density) const {
  std::size_t whole = 0, large = 0, each = 0;
  for (const Segment& s : layout_.segments()) {
    if (s.length < sparsifier_.dense_below) {
      whole += s.length;
    } else {
      large += s.length;
      each += kept_count(density, s.length);
    }
  }
  return whole + (sparsifier_.per_segment ? each : kept_count(density, large));
}

void BlockSelection::select(std::span<const float> block, double density, std::vector<std::uint32_t>& positions) {
  try {
    positions.clear();
    if (!sparsifier_.per_segment) {
      select_block(block, density, positions);
      return;
    }
    for (const Segment& s : layout_.segments()) {
      const bool whole = s.length < sparsifier_.dense_below;
      append_segment(block, s, whole ? s.length : kept_count(density, s.length), positions);
    }
  } catch (const DivergenceError& error) {
    name_segment(layout_, 0, block, "gradient", error);
  }
}

void BlockSelection::add_and_select(std::span<float> block, std::span<const float> addend, float scale, double density,
                                    std::vector<std::uint32_t>& positions) {
  if (!one_run()) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] += scale * addend[i];
    select(block, density, positions);
    return;
  }
  try {
    sparsifier_.selector->add_and_select(block, addend, scale, kept_count(density, block.size()), positions);
  } catch (const DivergenceError& error) {
    name_segment(layout_, 0, block, "gradient", error);
  }
}

/// Whether all values of the block compete.
bool BlockSelection::one_run() const {
  return !sparsifier_.per_segment &&
         std::ranges::all_of(layout_.segments(), [&](const Segment& s) { return s.length >= sparsifier_.dense_below; });
}

// One selection over all large segments; those below `dense_below` are whole and do not compete.
void BlockSelection::select_block(std::span<const float> block, double density, std::vector<std::uint32_t>& positions) {
  if (one_run()) {
    sparsifier_.selector->select(block, kept_count(density, block.size()), positions);
    return;
  }
  packed_.clear();
  for (const Segment& s : layout_.segments()) {
    if (s.length < sparsifier_.dense_below) continue;
    const auto values = block.subspan(s.offset, s.length);
    packed_.insert(packed_.end(), values.begin(), values.end());
  }
  std::vector<std::uint32_t> chosen;
  sparsifier_.selector->select(packed_, kept_count(density, packed_.size()), chosen);
  auto next = chosen.begin();
  std::size_t packed_before = 0;
  for (const Segment& s : layout_.segments()) {
    if (s.length < sparsifier_.dense_below) {
      append_segment(block, s, s.length, positions);
      continue;
    }
    for (; next != chosen.end() && *next < packed_before + s.length; ++next)
      positions.push_back(static_cast<std::uint32_t>(*next - packed_before + s.offset));
    packed_before += s.length;
  }
}

void BlockSelection::append_segment(std::span<const float> block, const Segment& segment, std::size_t k,
                                    std::vector<std::uint32_t>& positions) {
  const auto values = block.subspan(segment.offset, segment.length);
  const auto offset = static_cast<std::uint32_t>(segment.offset);
  if (k == segment.length) {
    require_finite(values);
    for (std::uint32_t i = 0; i < segment.length; ++i) positions.push_back(offset + i);
    return;
  }
  sparsifier_.selector->select(values, k, scratch_);
  for (const std::uint32_t i : scratch_) positions.push_back(offset + i);
}

}  // namespace hearsay

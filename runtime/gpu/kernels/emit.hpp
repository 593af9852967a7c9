#pragma once
// From a cut to entries: count per chunk, add up, write in the order of positions.
#include <cstdint>

#include "runtime/gpu/kernels/selection.hpp"

namespace hearsay::device {

// Two counts in one word: kept below, in the band above. Neither reaches 2³², as n does not.
constexpr std::uint64_t one_kept = 1, one_in_band = std::uint64_t{1} << 32;
constexpr std::uint32_t kept_of(std::uint64_t counts) { return static_cast<std::uint32_t>(counts); }
constexpr std::uint32_t band_of(std::uint64_t counts) { return static_cast<std::uint32_t>(counts >> 32); }

constexpr std::uint64_t class_of(const Cut& cut, float value) {
  const std::int32_t bits = magnitude_bits(value);
  if (bits >= cut.keep_from) return one_kept;
  return bits >= cut.band_from ? one_in_band : 0;
}

constexpr std::uint64_t classes_of(const Cut& cut, const Quad& quad) {
  std::uint64_t counts = 0;
  for (unsigned c = 0; c < 4; ++c) counts += c < quad.count ? class_of(cut, quad.values.at[c]) : 0;
  return counts;
}

/// Entries of a cut below `counts`: all that are kept, and those of the band whose ranks it has.
constexpr std::uint32_t entries_of(const Cut& cut, std::uint64_t counts) {
  const std::uint32_t band = band_of(counts), after = band < cut.first ? 0 : band - cut.first;
  return kept_of(counts) + (after < cut.count ? after : cut.count);
}

/// After the count nothing is left to do.
struct CountIsAll {
  HEARSAY_DEVICE void operator()(const SelectionView&, const Control&, std::uint32_t) const {}
};

/// The level of the next call: somewhat below the k-th magnitude; further below after too few candidates, closer
/// after needlessly many. Never changes a result.
struct Aim {
  HEARSAY_DEVICE void operator()(const SelectionView& view, const Control& control, std::uint32_t) const {
    float ease = control.ease;
    if (control.level != no_level) {
      if (control.candidates < view.k) {
        ease = ease * 0.8F > 0.25F ? ease * 0.8F : 0.25F;
      } else if (control.candidates / 2 > view.k) {
        ease = ease * 1.05F < 0.97F ? ease * 1.05F : 0.97F;
      }
    }
    const std::int32_t level = magnitude_bits(ease * float_of(control.cut.band_from));
    view.control->ease = ease;
    view.control->level = level > 0 ? level : no_level;
  }
};

/// chunk_counts ← how many entries of each class come before every chunk; then what else is known by the count.
template <class Then>
struct CountChunks {
  static constexpr unsigned threads = block_threads;
  struct Shared {};
  SelectionView view;
  std::uint32_t* arrivals;
  std::uint32_t by_sample = 0;  // of which cut
  Then then{};                  // (view, control, entries)

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    const Control control = block.read(view.control);
    if (control.failed() || view.k == 0 || control.by_sample != by_sample) return;
    typename Block::template PerThread<std::uint64_t> counts;
    for (std::uint64_t chunk = block.index(); chunk < control.chunks; chunk += block.blocks()) {
      block.phase([&](unsigned t) {
        counts[t] = classes_of(control.cut, quad_of<Block>(view, control.from_candidates != 0, chunk, t));
      });
      const std::uint64_t sum = block.exclusive_scan(counts);
      block.phase([&](unsigned t) {
        if (t == 0) view.chunk_counts[chunk] = sum;
      });
    }
    if (!block.is_last(arrivals)) return;
    const std::uint32_t entries = entries_of(control.cut, accumulate(block, control.chunks));
    block.phase([&](unsigned t) {
      if (t != 0) return;
      view.control->found = entries;
      then(view, control, entries);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE std::uint64_t accumulate(Block& block, std::uint64_t chunks) const {
    typename Block::template PerThread<std::uint64_t> counts;
    std::uint64_t before = 0;
    for (std::uint64_t first = 0; first < chunks; first += Block::threads) {
      block.phase([&](unsigned t) { counts[t] = first + t < chunks ? view.chunk_counts[first + t] : 0; });
      const std::uint64_t sum = block.exclusive_scan(counts);
      block.phase([&](unsigned t) {
        if (first + t < chunks) view.chunk_counts[first + t] = before + counts[t];
      });
      before += sum;
    }
    return before;
  }
};

/// Writes those of four values that the cut keeps, and sets them to 0 in the run. `before`: how many of each class come
/// before them.
HEARSAY_DEVICE inline void write_entries(const SelectionView& view, const Cut& cut, const Quad& quad,
                                         std::uint64_t before, const Entries& entries) {
  for (unsigned c = 0; c < 4; ++c) {
    const std::uint64_t its_class = c < quad.count ? class_of(cut, quad.values.at[c]) : 0;
    const std::uint32_t rank = band_of(before);  // of a value of the band
    if (its_class == one_kept || (its_class == one_in_band && rank >= cut.first && rank - cut.first < cut.count)) {
      const std::uint32_t at = entries_of(cut, before);
      entries.positions[at] = quad.position(c);
      entries.values[at] = quad.values.at[c];
      view.values[quad.position(c)] = 0.0F;
    }
    before += its_class;
  }
}

/// Writes the entries, ascending by position, and sets their values to 0.
struct Emit {
  static constexpr unsigned threads = block_threads;
  struct Shared {};
  SelectionView view;
  Entries entries;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    const Control control = block.read(view.control);
    if (control.failed() || view.k == 0) return;
    typename Block::template PerThread<Quad> quads;
    typename Block::template PerThread<std::uint64_t> before;
    for (std::uint64_t chunk = block.index(); chunk < control.chunks; chunk += block.blocks()) {
      block.phase([&](unsigned t) {
        quads[t] = quad_of<Block>(view, control.from_candidates != 0, chunk, t);
        before[t] = classes_of(control.cut, quads[t]);
      });
      if (block.exclusive_scan(before) == 0) continue;
      block.phase([&](unsigned t) {
        write_entries(view, control.cut, quads[t], view.chunk_counts[chunk] + before[t], entries);
      });
    }
  }
};

}  // namespace hearsay::device

#pragma once
// What the kernels of a selection share: the run of values, the control block that stays on the GPU, chunks and cuts.
//
// A selection ends in a cut: everything of magnitude `keep_from` up is kept, and of the band [band_from, keep_from) the
// values of rank [first, first + count) by position. Of an exact one the band is the magnitude of the k-th value, and
// `first` 0.
#include <cstdint>

#include "runtime/gpu/machine/block.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay::device {

constexpr unsigned block_threads = 512;
constexpr unsigned chunk_size = 4 * block_threads;  // values that a block looks at together: four a thread
constexpr unsigned rows = 4;                        // chunks that are loaded together where all values are read
constexpr unsigned tile_size = rows * chunk_size;
constexpr std::uint32_t no_position = 0xffffffffU;
constexpr std::int32_t no_level = 0x7fffffff;  // no finite magnitude reaches it

struct Cut {
  std::int32_t keep_from;
  std::int32_t band_from;
  std::uint32_t first, count;
};

/// A run of candidates: entries [page · chunk_size, … + count) of the pages.
struct Chunk {
  std::uint32_t page;
  std::uint32_t count;
};

/// What a selection remembers and finds out, in the GPU's memory.
struct Control {
  // From call to call:
  std::int32_t level = no_level;  // magnitude bits from which the next call collects candidates
  float ease = 0.9F;              // level over k-th magnitude, ≤ 1
  std::uint32_t k = 0;            // that the level is for
  // This call's:
  std::uint32_t first_bad = no_position;  // first position whose value is not finite
  std::uint32_t pages = 0;                // that were asked for; more than there are: overflow
  std::uint32_t candidates = 0;           // that reach the level
  std::uint32_t from_candidates = 0;      // 1: the cut is searched among them, 0: among all values
  std::uint32_t chunks = 0;               // of what is searched
  std::int32_t prefix = 0;                // leading bits of the k-th magnitude, as far as known
  std::uint32_t above = 0;                // values of larger leading bits
  std::uint32_t by_sample = 0;            // 1: a sample has suggested the cut
  std::uint32_t found = 0;                // entries of the cut
  Cut cut = {no_level, no_level, 0, 0};

  HEARSAY_DEVICE bool failed() const { return first_bad != no_position; }
};

constexpr unsigned most_launches = 8;  // of a selection that count arrivals, each with a counter of its own

/// Entries found, in the GPU's memory: k of them where the search keeps k, unless a value was not finite.
struct Entries {
  std::uint32_t* positions;
  float* values;
};

/// Arguments that all kernels of a selection have; passed by value. Pointers are the GPU's.
struct SelectionView {
  float* values;
  std::uint64_t n;
  std::uint32_t k;
  bool aligned;  // values and what is added to them lie on multiples of 16 bytes
  Control* control;
  std::uint64_t* chunk_counts;  // kept (low half) and in the band (high half); later how many come before the chunk
  // Candidates, in pages of chunk_size.
  const Chunk* chunks;  // in the order of positions
  const float* page_values;
  const std::uint32_t* page_positions;

  HEARSAY_DEVICE std::uint64_t all_chunks() const { return ceil_div(n, chunk_size); }
};

/// The part of one chunk that thread t sees: four values in the order of their positions.
struct Quad {
  Float4 values;
  std::uint32_t count;             // ≤ 4
  std::uint64_t first;             // position of the first …
  const std::uint32_t* positions;  // … or where the positions are

  HEARSAY_DEVICE std::uint32_t position(unsigned c) const {
    return positions == nullptr ? static_cast<std::uint32_t>(first + c) : positions[c];
  }
};

constexpr std::uint32_t at_most_4(std::uint64_t first, std::uint64_t end) {
  const std::uint64_t left = first < end ? end - first : 0;
  return static_cast<std::uint32_t>(left < 4 ? left : 4);
}

/// The four values of chunk `index` among the candidates, or among all values.
template <class Block>
HEARSAY_DEVICE Quad quad_of(const SelectionView& view, bool from_candidates, std::uint64_t index, unsigned t) {
  if (!from_candidates) {
    const std::uint64_t first = index * chunk_size + 4 * t;
    return {load4<Block>(view.values, first, view.n, view.aligned), at_most_4(first, view.n), first, nullptr};
  }
  const Chunk chunk = view.chunks[index];
  const std::uint64_t page = static_cast<std::uint64_t>(chunk.page) * chunk_size;
  return {load4<Block>(view.page_values + page, 4 * t, chunk.count, true), at_most_4(4 * t, chunk.count), 0,
          view.page_positions + page + 4 * t};
}

}  // namespace hearsay::device

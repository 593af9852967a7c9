#pragma once
// The one pass over all values: r ← r + scale · g, and whatever reaches the level of the last call.
//
// Each block adds a contiguous share of the values, tile by tile, and appends what reaches the level to pages of
// chunk_size entries that it takes from a common counter; the last block puts the pages in order (of blocks, and within
// a block as they were filled), so candidates are sorted by position without blocks waiting for each other.
// Cost: 12 bytes a value; 8 bytes a candidate; one scan of the block a tile.
#include <cstdint>

#include "runtime/gpu/kernels/radix.hpp"
#include "runtime/gpu/kernels/selection.hpp"

namespace hearsay::device {

/// Which block filled a page, and as which of its pages.
struct PageOwner {
  std::uint32_t block, sequence;
};

/// Where a block stands in its pages. A block without pages behaves as if its last one were full.
struct Pages {
  std::uint32_t count = 0;          // taken so far
  std::uint32_t fill = chunk_size;  // entries in the last one
  std::uint32_t last = 0;           // its number

  /// Pages that `entries` more entries (≥ 1) need.
  constexpr std::uint32_t needed(std::uint32_t entries) const {
    return static_cast<std::uint32_t>(ceil_div(fill + entries, chunk_size)) - 1;
  }
  /// Where the rank-th of them goes, if `first_new` is the first of the needed pages: page · chunk_size + slot.
  constexpr std::uint64_t slot(std::uint32_t first_new, std::uint32_t rank) const {
    const std::uint32_t at = fill + rank;
    if (at < chunk_size) return static_cast<std::uint64_t>(last) * chunk_size + at;
    return static_cast<std::uint64_t>(first_new) * chunk_size + (at - chunk_size);
  }
  constexpr Pages after(std::uint32_t first_new, std::uint32_t entries) const {
    const std::uint32_t more = needed(entries);
    return {count + more, (fill + entries - 1) % chunk_size + 1, more > 0 ? first_new + more - 1 : last};
  }
};

/// Where candidates are kept.
struct CandidateStore {
  float* values;             // (capacity, chunk_size)
  std::uint32_t* positions;  // (capacity, chunk_size)
  PageOwner* owners;         // capacity
  Pages* of_block;           // block_threads
  Chunk* chunks;             // capacity
  std::uint32_t capacity;    // pages
};

struct AddAndCollect {
  static constexpr unsigned threads = block_threads;  // and no more blocks
  struct Shared {
    std::uint32_t histogram[bins];
    std::uint32_t first_new;
    std::uint32_t first_chunk[block_threads];
  };
  /// What a thread holds of a tile: four values of each row. Candidates are marked in `hits`, one bit a value.
  struct Part {
    Float4 row[rows];
    std::uint32_t hits;
  };
  SelectionView view;
  const float* addend;
  float scale;
  CandidateStore store;
  std::uint32_t* histogram;  // of the candidates' first digits; starts as zeros
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const std::int32_t level = block.read(&view.control->level);
    clear_histogram(block, shared.histogram);
    Pages pages;
    const Share share = share_of(ceil_div(view.n, tile_size), block.index(), block.blocks());
    for (std::uint64_t tile = share.first; tile < share.end; ++tile)
      add_tile(block, shared, tile * tile_size, level, pages);
    flush_histogram(block, shared.histogram, histogram);
    block.phase([&](unsigned t) {
      if (t == 0) store.of_block[block.index()] = pages;
    });
    if (block.is_last(arrivals)) decide(block, shared);
  }

 private:
  static HEARSAY_DEVICE std::uint64_t first_of(std::uint64_t tile_first, unsigned row, unsigned t) {
    return tile_first + row * chunk_size + 4 * t;
  }

  template <class Block>
  HEARSAY_DEVICE void add_tile(Block& block, Shared& shared, std::uint64_t first, std::int32_t level,
                               Pages& pages) const {
    typename Block::template PerThread<Part> parts;
    typename Block::template PerThread<std::uint64_t> before;  // hits of each row, 16 bits each: at most 2048
    block.phase([&](unsigned t) {
      parts[t] = added<Block>(first, t, level);
      before[t] = row_counts(parts[t].hits);
    });
    const std::uint64_t sums = block.exclusive_scan(before);
    if (sums == 0) return;
    std::uint32_t entries = 0;
    for (unsigned row = 0; row < rows; ++row) entries += count_of(sums, row);
    block.phase([&](unsigned t) {
      if (t == 0) shared.first_new = take_pages<Block>(block.index(), pages, pages.needed(entries));
    });
    const std::uint32_t first_new = block.read(&shared.first_new);
    block.phase([&](unsigned t) { append<Block>(shared, parts[t], first, t, sums, before[t], pages, first_new); });
    pages = pages.after(first_new, entries);
  }

  /// Adds one thread's part of a tile. All loads come before the first store, so that they are under way together.
  template <class Block>
  HEARSAY_DEVICE Part added(std::uint64_t tile_first, unsigned t, std::int32_t level) const {
    Part part;
    Float4 addends[rows];
    for (unsigned row = 0; row < rows; ++row) {
      part.row[row] = load4<Block>(view.values, first_of(tile_first, row, t), view.n, view.aligned);
      addends[row] = load4<Block>(addend, first_of(tile_first, row, t), view.n, view.aligned);
    }
    part.hits = 0;
    for (unsigned row = 0; row < rows; ++row) {
      const std::uint64_t first = first_of(tile_first, row, t);
      for (unsigned c = 0; c < 4; ++c) {
        part.row[row].at[c] += scale * addends[row].at[c];
        if (first + c >= view.n) continue;
        const std::int32_t bits = magnitude_bits(part.row[row].at[c]);
        if (bits >= level) part.hits |= 1U << (4 * row + c);
        if (bits >= infinity_bits) Block::lower(&view.control->first_bad, static_cast<std::uint32_t>(first + c));
      }
      store4<Block>(part.row[row], view.values, first, view.n, view.aligned);
    }
    return part;
  }

  static HEARSAY_DEVICE std::uint64_t row_counts(std::uint32_t hits) {
    std::uint64_t counts = 0;
    for (unsigned bit = 0; bit < 4 * rows; ++bit) counts += std::uint64_t{(hits >> bit) & 1U} << (16 * (bit / 4));
    return counts;
  }
  static HEARSAY_DEVICE std::uint32_t count_of(std::uint64_t counts, unsigned row) {
    return static_cast<std::uint32_t>(counts >> (16 * row)) & 0xffffU;
  }

  /// The first of `needed` pages. Pages beyond the capacity are counted, and nothing is written to them.
  template <class Block>
  HEARSAY_DEVICE std::uint32_t take_pages(std::uint32_t block, const Pages& pages, std::uint32_t needed) const {
    if (needed == 0) return 0;
    const std::uint32_t first = Block::add(&view.control->pages, needed);
    for (std::uint32_t i = 0; i < needed; ++i)
      if (first + i < store.capacity) store.owners[first + i] = {block, pages.count + i};
    return first;
  }

  template <class Block>
  HEARSAY_DEVICE void append(Shared& shared, const Part& part, std::uint64_t tile_first, unsigned t, std::uint64_t sums,
                             std::uint64_t before, const Pages& pages, std::uint32_t first_new) const {
    std::uint32_t row_first = 0;  // rank of the row's first candidate in the tile
    for (unsigned row = 0; row < rows; ++row) {
      std::uint32_t rank = row_first + count_of(before, row);
      for (unsigned c = 0; c < 4; ++c) {
        if (((part.hits >> (4 * row + c)) & 1U) == 0) continue;
        const float value = part.row[row].at[c];
        Block::add(shared.histogram + digit_at(0).of(magnitude_bits(value)), 1U);
        const std::uint64_t slot = pages.slot(first_new, rank++);
        if (slot / chunk_size >= store.capacity) continue;
        store.values[slot] = value;
        store.positions[slot] = static_cast<std::uint32_t>(first_of(tile_first, row, t) + c);
      }
      row_first += count_of(sums, row);
    }
  }

  /// In the last block: are the candidates enough, and did they fit? Then they are put in order, else all values are to
  /// be read again.
  template <class Block>
  HEARSAY_DEVICE void decide(Block& block, Shared& shared) const {
    const std::uint32_t bad = block.read(&view.control->first_bad);
    const std::uint32_t used = block.read(&view.control->pages);
    typename Block::template PerThread<std::uint32_t> counts;
    block.phase([&](unsigned t) {
      counts[t] = 0;
      for (unsigned bin = t; bin < bins; bin += Block::threads) counts[t] += histogram[bin];
    });
    const std::uint32_t candidates = block.exclusive_scan(counts);
    const bool enough = bad == no_position && view.k > 0 && candidates >= view.k && used <= store.capacity;
    block.phase([&](unsigned t) {
      if (t != 0) return;
      view.control->candidates = candidates;
      view.control->from_candidates = enough ? 1 : 0;
      view.control->chunks = enough ? used : static_cast<std::uint32_t>(view.all_chunks());
    });
    if (!enough) return;
    order_pages(block, shared, used);
    pick_digit(block, histogram, 0, view.k, view.control);
  }

  template <class Block>
  HEARSAY_DEVICE void order_pages(Block& block, Shared& shared, std::uint32_t used) const {
    typename Block::template PerThread<std::uint32_t> counts;
    block.phase([&](unsigned t) { counts[t] = t < block.blocks() ? store.of_block[t].count : 0; });
    block.exclusive_scan(counts);
    block.phase([&](unsigned t) { shared.first_chunk[t] = counts[t]; });
    block.phase([&](unsigned t) {
      for (std::uint32_t page = t; page < used; page += Block::threads) {
        const PageOwner owner = store.owners[page];
        const Pages pages = store.of_block[owner.block];
        const bool is_last = owner.sequence + 1 == pages.count;
        store.chunks[shared.first_chunk[owner.block] + owner.sequence] = {page, is_last ? pages.fill : chunk_size};
      }
    });
  }
};

}  // namespace hearsay::device

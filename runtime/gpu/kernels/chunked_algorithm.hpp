#pragma once
// The selection of `chunked` on the GPU, fused with the addition of the gradient.
//   r ← r + scale · g;  of every chunk its share of k, by (|r_i| descending, i ascending), written ascending;
//   r ← 0 there
// As sparsify/selectors/chunked.cpp, bit for bit (sarfi2025sparseloco). Where entries of a chunk go is known before, so
// blocks do not count for each other: each takes chunk after chunk, with a radix select in its own shared memory.
// Cost: one launch; 12 bytes a value to add, 4 to select, and 3 reads more of what the block has just read. A chunk is
// one block's work, however long, and has its barriers, however short: some thousand values are what it is made for.
#include <cstdint>

#include "runtime/gpu/kernels/emit.hpp"
#include "runtime/gpu/kernels/selection_memory.hpp"
#include "sparsify/searches.hpp"

namespace hearsay::device {

struct SelectChunks {
  static constexpr unsigned threads = block_threads;
  /// As Control has it, of one chunk.
  struct Pick {
    std::int32_t prefix;
    std::uint32_t above;
    Cut cut;
  };
  struct Shared {
    std::uint32_t histogram[bins];
    Pick pick;
  };
  SelectionView view;
  std::uint64_t chunk;  // values
  Entries entries;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    if (block.read(view.control).failed()) return;
    for (std::uint64_t first = block.index() * chunk; first < view.n; first += block.blocks() * chunk) {
      const Share values = {first, first + chunk < view.n ? first + chunk : view.n};
      const std::uint64_t before = share_before(first, view.k, view.n);
      const auto count = static_cast<std::uint32_t>(share_before(values.end, view.k, view.n) - before);
      if (count == 0) continue;
      search(block, shared, values, count);
      emit(block, block.read(&shared.pick).cut, values, before);
    }
    block.phase([&](unsigned t) {
      if (t == 0 && block.index() == 0) view.control->found = view.k;
    });
  }

 private:
  /// Four values of a row of the chunk.
  template <class Block>
  HEARSAY_DEVICE Quad quad(const Share& values, std::uint64_t row, unsigned t) const {
    const std::uint64_t first = row + 4 * t;
    const bool aligned = view.aligned && values.first % 4 == 0;
    return {load4<Block>(view.values, first, values.end, aligned), at_most_4(first, values.end), first, nullptr};
  }

  template <class Block>
  HEARSAY_DEVICE void search(Block& block, Shared& shared, const Share& values, std::uint32_t count) const {
    block.phase([&](unsigned t) {
      if (t == 0) shared.pick.prefix = 0, shared.pick.above = 0;
    });
    for (unsigned number = 0; number < digit_count; ++number) {
      const std::int32_t prefix = block.read(&shared.pick.prefix);
      clear_histogram(block, shared.histogram);
      block.phase([&](unsigned t) {
        for (std::uint64_t row = values.first; row < values.end; row += chunk_size)
          count_digit<Block>(quad<Block>(values, row, t), digit_at(number), prefix, shared);
      });
      pick_digit(block, shared.histogram, number, count, &shared.pick);
    }
  }
  template <class Block>
  HEARSAY_DEVICE void count_digit(const Quad& quad, const Digit& digit, std::int32_t prefix, Shared& shared) const {
    for (unsigned c = 0; c < quad.count; ++c) {
      const std::int32_t bits = magnitude_bits(quad.values.at[c]);
      if (digit.follows(prefix, bits)) Block::add(shared.histogram + digit.of(bits), 1U);
    }
  }

  template <class Block>
  HEARSAY_DEVICE void emit(Block& block, const Cut& cut, const Share& values, std::uint64_t first_entry) const {
    typename Block::template PerThread<Quad> quads;
    typename Block::template PerThread<std::uint64_t> before;
    const Entries own{entries.positions + first_entry, entries.values + first_entry};
    std::uint64_t rows_before = 0;
    for (std::uint64_t row = values.first; row < values.end; row += chunk_size) {
      block.phase([&](unsigned t) {
        quads[t] = quad<Block>(values, row, t);
        before[t] = classes_of(cut, quads[t]);
      });
      const std::uint64_t of_row = block.exclusive_scan(before);
      if (of_row != 0)
        block.phase([&](unsigned t) { write_entries(view, cut, quads[t], rows_before + before[t], own); });
      rows_before += of_row;
    }
  }
};

/// The selection of one run of n values, with its memory. Machine: Gpu or Emulator.
template <class Machine>
class ChunkedTopK {
 public:
  ChunkedTopK(const Machine& machine, std::uint64_t n) : memory_(machine, n, 0) {}

  void add_and_select(Machine& machine, float* values, const float* addend, float scale, std::uint32_t k,
                      const Search& search, const Entries& entries) {
    const SelectionView view = memory_.view(values, addend, k);
    machine.run_in_turn(memory_.blocks(), memory_.begin(view), AddValues{view, addend, scale},
                        SelectChunks{view, search.chunk, entries});
  }
  const SelectionMemory<Machine>& memory() const { return memory_; }

 private:
  SelectionMemory<Machine> memory_;
};

}  // namespace hearsay::device

#pragma once
// Exact top-k on the GPU, fused with the addition of the gradient.
//   r ← r + scale · g;  the first k positions by (|r_i| descending, i ascending), written ascending;  r ← 0 there
// As sparsify/selectors/topk.cpp, bit for bit; a radix select (alabi2012fast) among the values that reach a level
// somewhat below the k-th magnitude of the last call. Are those fewer than k or too many for the memory, all values are
// searched: decided on the GPU, so the processor waits for nothing.
// Cost: one launch of 7 kernels; 12 bytes a value, and passes over the candidates. First call and failure: 5 reads of
// the values more. Memory: about 32 k bytes, n / 256 bytes, and 16 KiB a block, of which there are n / 8192 or as many
// as the machine holds.
#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/gpu/kernels/add_and_collect.hpp"
#include "runtime/gpu/kernels/emit.hpp"
#include "runtime/gpu/kernels/radix.hpp"

namespace hearsay::device {

/// Entries found, in the GPU's memory: k of them, unless a value was not finite.
struct Entries {
  std::uint32_t* positions;
  float* values;
};

/// Starts a call: nothing counted yet, and no level that was meant for another k. The work of one block.
struct Begin {
  static constexpr unsigned threads = block_threads;
  struct Shared {};
  Control* control;
  std::uint32_t* histograms;
  std::uint32_t words;  // of all histograms
  std::uint32_t* arrivals;
  std::uint32_t k;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    if (block.index() != 0) return;
    block.phase([&](unsigned t) {
      for (std::uint32_t word = t; word < words; word += Block::threads) histograms[word] = 0;
      if (t < most_launches) arrivals[t] = 0;
      if (t != 0) return;
      Control fresh;
      fresh.ease = control->ease;
      fresh.level = control->k == k ? control->level : no_level;
      fresh.k = k;
      *control = fresh;
    });
  }
};

/// The selection of one run of n values, with its memory. Machine: Gpu or Emulator.
template <class Machine>
class TopK {
 public:
  /// For k up to `most_k` of n < 2³² values.
  TopK(Machine& machine, std::uint64_t n, std::uint32_t most_k)
      : n_(n),
        blocks_(blocks_for(machine, n)),
        pages_(pages_for(n, most_k, blocks_)),
        control_(1),
        arrivals_(most_launches),
        histograms_((digit_count + 1) * bins),
        page_values_(pages_ * chunk_size),
        page_positions_(pages_ * chunk_size),
        owners_(pages_),
        of_block_(block_threads),
        chunks_(pages_),
        chunk_counts_(std::max<std::size_t>(pages_, ceil_div(n, chunk_size))) {
    const Control nothing;
    control_.upload(std::span(&nothing, 1));
  }

  void add_and_select(Machine& machine, float* values, const float* addend, float scale, std::uint32_t k,
                      const Entries& entries) {
    const SelectionView view = view_of(values, addend, k);
    std::uint32_t* const arrivals = arrivals_.data();
    const auto count_digit = [&](unsigned number) {
      return CountDigit{view, number, histograms_.data() + (number + 1) * bins, arrivals + number + 1};
    };
    machine.run_in_turn(blocks_,  //
                        Begin{control_.data(), histograms_.data(), (digit_count + 1) * bins, arrivals, k},
                        AddAndCollect{view, addend, scale, store(), histograms_.data(), arrivals},  //
                        count_digit(0), count_digit(1), count_digit(2), CountChunks{view, arrivals + digit_count + 1},
                        Emit{view, entries.positions, entries.values});
  }

  /// Where the machine keeps what `control` returns.
  const Control* control_block() const { return control_.data(); }
  /// What the last call found. Complete once the machine has done its work.
  Control control() const {
    Control control;
    control_.download(std::span(&control, 1));
    return control;
  }

 private:
  /// As many as have a tile to look at, and are all at work at once.
  static unsigned blocks_for(const Machine& machine, std::uint64_t n) {
    const std::uint64_t tiles = std::max<std::uint64_t>(1, ceil_div(n, tile_size));
    return static_cast<unsigned>(std::min<std::uint64_t>({tiles, machine.resident_blocks(), block_threads}));
  }
  /// Room for four times as many candidates as are wanted, or for all values; and a page that each block fills partly.
  static std::uint32_t pages_for(std::uint64_t n, std::uint32_t most_k, unsigned blocks) {
    const std::uint64_t candidates = std::min<std::uint64_t>(n, 4 * std::uint64_t{most_k});
    return static_cast<std::uint32_t>(ceil_div(candidates, chunk_size) + blocks);
  }
  SelectionView view_of(float* values, const float* addend, std::uint32_t k) {
    return {.values = values,
            .n = n_,
            .k = k,
            .aligned = can_vectorise(values, addend),
            .control = control_.data(),
            .chunk_counts = chunk_counts_.data(),
            .chunks = chunks_.data(),
            .page_values = page_values_.data(),
            .page_positions = page_positions_.data()};
  }
  CandidateStore store() {
    return {page_values_.data(), page_positions_.data(), owners_.data(), of_block_.data(), chunks_.data(), pages_};
  }

  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  std::uint64_t n_;
  unsigned blocks_;
  std::uint32_t pages_;
  Buffer<Control> control_;
  Buffer<std::uint32_t> arrivals_;
  Buffer<std::uint32_t> histograms_;  // (of candidates, of each digit; bins)
  Buffer<float> page_values_;
  Buffer<std::uint32_t> page_positions_;
  Buffer<PageOwner> owners_;
  Buffer<Pages> of_block_;
  Buffer<Chunk> chunks_;
  Buffer<std::uint64_t> chunk_counts_;
};

}  // namespace hearsay::device

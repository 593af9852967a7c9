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
#include "runtime/gpu/kernels/selection_memory.hpp"

namespace hearsay::device {

/// The selection of one run of n values, with its memory. Machine: Gpu or Emulator.
template <class Machine>
class TopK {
 public:
  /// For k up to `most_k` of n < 2³² values.
  TopK(const Machine& machine, std::uint64_t n, std::uint32_t most_k)
      : pages_(pages_for(n, most_k, selection_blocks(machine, n))),
        memory_(machine, n, digit_count + 1, pages_),
        page_values_(std::size_t{pages_} * chunk_size),
        page_positions_(std::size_t{pages_} * chunk_size),
        owners_(pages_),
        of_block_(block_threads),
        chunks_(pages_) {}

  void add_and_select(Machine& machine, float* values, const float* addend, float scale, std::uint32_t k,
                      const Entries& entries) {
    SelectionView view = memory_.view(values, addend, k);
    view.chunks = chunks_.data();
    view.page_values = page_values_.data(), view.page_positions = page_positions_.data();
    const auto count_digit = [&](unsigned number) {
      return CountDigit{view, number, memory_.histogram(number + 1), memory_.arrivals(number + 1)};
    };
    machine.run_in_turn(memory_.blocks(), memory_.begin(view),
                        AddAndCollect{view, addend, scale, store(), memory_.histogram(0), memory_.arrivals(0)},
                        count_digit(0), count_digit(1), count_digit(2),
                        CountChunks<Aim>{view, memory_.arrivals(digit_count + 1)}, Emit{view, entries});
  }

  const SelectionMemory<Machine>& memory() const { return memory_; }
  /// What the last call found. Complete once the machine has done its work.
  Control control() const { return memory_.control(); }

 private:
  /// Room for four times as many candidates as are wanted, or for all values; and a page that each block fills partly.
  static std::uint32_t pages_for(std::uint64_t n, std::uint32_t most_k, unsigned blocks) {
    const std::uint64_t candidates = std::min<std::uint64_t>(n, 4 * std::uint64_t{most_k});
    return static_cast<std::uint32_t>(ceil_div(candidates, chunk_size) + blocks);
  }
  CandidateStore store() {
    return {page_values_.data(), page_positions_.data(), owners_.data(), of_block_.data(), chunks_.data(), pages_};
  }

  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  std::uint32_t pages_;
  SelectionMemory<Machine> memory_;  // histograms: of candidates, of each digit
  Buffer<float> page_values_;
  Buffer<std::uint32_t> page_positions_;
  Buffer<PageOwner> owners_;
  Buffer<Pages> of_block_;
  Buffer<Chunk> chunks_;
};

}  // namespace hearsay::device

#pragma once
// The selection of `sampled` on the GPU, fused with the addition of the gradient.
//   r ← r + scale · g;  t = the magnitude of that rank in the sample;  {i : |r_i| ≥ t}, written ascending;  r ← 0
//   there;  where those are more than 1.3 k or fewer than 0.8 k, or t = 0: the k largest
// As sparsify/selectors/sampled.cpp, bit for bit: the sample is the same, the processor draws where it begins
// (aji2017sparse; lin2018dgc). More than 1.3 k survivors have the k largest of all among them, so both ways out are one
// exact selection. Which one is gone is decided on the GPU.
// Cost: one launch; 20 bytes a value and a sector of 32 for each of the sample; 12 bytes a value more where the sample
// misleads. Memory: n / 256 bytes.
#include <cstdint>

#include "runtime/gpu/kernels/emit.hpp"
#include "runtime/gpu/kernels/selection_memory.hpp"
#include "sparsify/searches.hpp"

namespace hearsay::device {

/// Every stride-th value; none if the stride is 1.
struct Sample {
  std::uint64_t first, stride;
  std::uint32_t rank;  // of its threshold

  HEARSAY_DEVICE std::uint64_t count(std::uint64_t n) const { return ceil_div(n - first, stride); }
};

/// One digit's histogram over the sample; the last block picks the digit, after the last one the cut.
struct CountSampleDigit {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    std::uint32_t histogram[bins];
  };
  SelectionView view;
  Sample sample;
  unsigned number;           // of the digit
  std::uint32_t* histogram;  // starts as zeros
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    if (sample.stride == 1) return;
    const Control control = block.read(view.control);
    if (control.failed() || view.k == 0) return;
    clear_histogram(block, shared.histogram);
    block.phase([&](unsigned t) { count<Block>(block.index(), block.blocks(), control.prefix, shared, t); });
    flush_histogram(block, shared.histogram, histogram);
    if (!block.is_last(arrivals)) return;
    pick_digit(block, histogram, number, sample.rank, view.control);
    if (number + 1 == digit_count) suggest(block);
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void count(unsigned index, unsigned blocks, std::int32_t prefix, Shared& shared, unsigned t) const {
    const Digit digit = digit_at(number);
    const std::uint64_t step = std::uint64_t{blocks} * Block::threads;
    for (std::uint64_t i = std::uint64_t{index} * Block::threads + t; i < sample.count(view.n); i += step) {
      const std::int32_t bits = magnitude_bits(view.values[sample.first + i * sample.stride]);
      if (digit.follows(prefix, bits)) Block::add(shared.histogram + digit.of(bits), 1U);
    }
  }

  /// All from the threshold up. Most values are 0 where that is: all of them would be collected.
  template <class Block>
  HEARSAY_DEVICE void suggest(Block& block) const {
    block.phase([&](unsigned t) {
      if (t != 0) return;
      const std::int32_t least = view.control->prefix;
      view.control->cut = {least, least, 0, 0};
      view.control->by_sample = least > 0 ? 1 : 0;
      view.control->prefix = 0, view.control->above = 0;
    });
  }
};

/// Whether the sample has misled: then the k largest are searched.
struct Judge {
  HEARSAY_DEVICE void operator()(const SelectionView& view, const Control&, std::uint32_t entries) const {
    if (too_many(entries, view.k) || too_few(entries, view.k)) view.control->by_sample = 0;
  }
};

/// The selection of one run of n values, with its memory. Machine: Gpu or Emulator.
template <class Machine>
class SampledTopK {
 public:
  SampledTopK(const Machine& machine, std::uint64_t n) : memory_(machine, n, 2 * digit_count) {}

  /// `entries` has room for 1.3 k. How many there are, the control block says.
  void add_and_select(Machine& machine, float* values, const float* addend, float scale, std::uint32_t k,
                      const Search& search, const Entries& entries) {
    const SelectionView view = memory_.view(values, addend, k);
    const Sample sample{search.first, search.stride, static_cast<std::uint32_t>(search.rank)};
    const auto of_sample = [&](unsigned number) {
      return CountSampleDigit{view, sample, number, memory_.histogram(number), memory_.arrivals(number)};
    };
    const auto of_all = [&](unsigned number) {
      const unsigned own = digit_count + number;
      return CountDigit{view, number, memory_.histogram(own), memory_.arrivals(own)};
    };
    machine.run_in_turn(memory_.blocks(), memory_.begin(view), AddValues{view, addend, scale}, of_sample(0),
                        of_sample(1), of_sample(2), CountChunks<Judge>{view, memory_.arrivals(2 * digit_count), 1},
                        of_all(0), of_all(1), of_all(2),
                        CountChunks<CountIsAll>{view, memory_.arrivals(2 * digit_count + 1)}, Emit{view, entries});
  }
  const SelectionMemory<Machine>& memory() const { return memory_; }

 private:
  SelectionMemory<Machine> memory_;  // histograms: of each digit of the sample, of each of all values
};

}  // namespace hearsay::device

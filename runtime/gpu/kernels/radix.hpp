#pragma once
// The k-th largest magnitude, digit by digit: 11 + 11 + 9 bits of the 31 that order magnitudes.
#include <cstdint>

#include "runtime/gpu/kernels/selection.hpp"

namespace hearsay::device {

constexpr unsigned bins = 2048;

struct Digit {
  int shift, width;  // bits [shift, shift + width)

  constexpr std::uint32_t of(std::int32_t bits) const {
    return static_cast<std::uint32_t>(bits >> shift) & ((1U << width) - 1U);
  }
  /// Whether the bits before this digit are `prefix`.
  constexpr bool follows(std::int32_t prefix, std::int32_t bits) const { return (bits >> shift >> width) == prefix; }
};

constexpr unsigned digit_count = 3;
constexpr Digit digit_at(unsigned number) {
  return number == 0 ? Digit{20, 11} : number == 1 ? Digit{9, 11} : Digit{0, 9};
}

template <class Block>
HEARSAY_DEVICE void clear_histogram(Block& block, std::uint32_t* histogram) {
  block.phase([&](unsigned t) {
    for (unsigned bin = t; bin < bins; bin += Block::threads) histogram[bin] = 0;
  });
}

/// Adds a block's histogram to the grid's.
template <class Block>
HEARSAY_DEVICE void flush_histogram(Block& block, const std::uint32_t* of_block, std::uint32_t* of_grid) {
  block.phase([&](unsigned t) {
    for (unsigned bin = t; bin < bins; bin += Block::threads)
      if (of_block[bin] != 0) Block::add(of_grid + bin, of_block[bin]);
  });
}

/// Appends to control.prefix the digit of the k-th largest magnitude, given the histogram of all that share the prefix.
/// Called by the last block of a grid. After the last digit the cut is known. State: Control, or what has its members
/// prefix, above and cut.
template <class Block, class State>
HEARSAY_DEVICE void pick_digit(Block& block, const std::uint32_t* histogram, unsigned number, std::uint32_t k,
                               State* control) {
  constexpr unsigned each = bins / Block::threads;
  typename Block::template PerThread<std::uint32_t> counts;
  const std::int32_t prefix = block.read(&control->prefix);
  const std::uint32_t above = block.read(&control->above);
  const auto bin_of = [](unsigned t, unsigned i) { return bins - 1 - (each * t + i); };  // thread 0 has the largest
  block.phase([&](unsigned t) {
    counts[t] = 0;
    for (unsigned i = 0; i < each; ++i) counts[t] += histogram[bin_of(t, i)];
  });
  block.exclusive_scan(counts);
  block.phase([&](unsigned t) {
    std::uint32_t before = above + counts[t];
    for (unsigned i = 0; i < each; ++i) {
      const std::uint32_t inside = histogram[bin_of(t, i)];
      if (before < k && k <= before + inside) {  // in one thread only
        const std::int32_t found = (prefix << digit_at(number).width) | static_cast<std::int32_t>(bin_of(t, i));
        control->prefix = found;
        control->above = before;
        if (number + 1 == digit_count) control->cut = {found + 1, found, 0, k - before};
      }
      before += inside;
    }
  });
}

/// One digit's histogram over the candidates, or over all values; the last block picks the digit.
struct CountDigit {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    std::uint32_t histogram[bins];
  };
  SelectionView view;
  unsigned number;           // of the digit
  std::uint32_t* histogram;  // starts as zeros
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const Control control = block.read(view.control);
    if (control.failed() || view.k == 0 || control.by_sample != 0) return;
    if (number == 0 && control.from_candidates != 0) return;  // was counted while candidates were collected
    clear_histogram(block, shared.histogram);
    block.phase([&](unsigned t) {
      for (std::uint64_t chunk = block.index(); chunk < control.chunks; chunk += block.blocks())
        count<Block>(quad_of<Block>(view, control.from_candidates != 0, chunk, t), control.prefix, shared);
    });
    flush_histogram(block, shared.histogram, histogram);
    if (block.is_last(arrivals)) pick_digit(block, histogram, number, view.k, view.control);
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void count(const Quad& quad, std::int32_t prefix, Shared& shared) const {
    const Digit digit = digit_at(number);
    for (unsigned c = 0; c < 4; ++c) {
      const std::int32_t bits = magnitude_bits(quad.values.at[c]);
      if (c < quad.count && digit.follows(prefix, bits)) Block::add(shared.histogram + digit.of(bits), 1U);
    }
  }
};

}  // namespace hearsay::device

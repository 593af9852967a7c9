#pragma once
// What every selection of one run of values keeps on the GPU, and how it begins.
#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/gpu/kernels/radix.hpp"
#include "runtime/gpu/kernels/selection.hpp"

namespace hearsay::device {

/// Starts a call: nothing counted yet, and no level that was meant for another k. The work of one block.
struct Begin {
  static constexpr unsigned threads = block_threads;
  struct Shared {};
  SelectionView view;
  std::uint32_t* histograms;
  std::uint32_t words;  // of all histograms
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    if (block.index() != 0) return;
    block.phase([&](unsigned t) {
      for (std::uint32_t word = t; word < words; word += Block::threads) histograms[word] = 0;
      if (t < most_launches) arrivals[t] = 0;
      if (t != 0) return;
      Control fresh;
      fresh.ease = view.control->ease;
      fresh.level = view.control->k == view.k ? view.control->level : no_level;
      fresh.k = view.k;
      fresh.chunks = static_cast<std::uint32_t>(view.all_chunks());
      *view.control = fresh;
    });
  }
};

/// values ← values + scale · addend, and the first that is not finite.
struct AddValues {
  static constexpr unsigned threads = block_threads;
  struct Shared {};
  SelectionView view;
  const float* addend;
  float scale;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      for (std::uint64_t chunk = block.index(); chunk < view.all_chunks(); chunk += block.blocks())
        add<Block>(chunk * chunk_size + 4 * t);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void add(std::uint64_t first) const {
    Float4 sum = load4<Block>(view.values, first, view.n, view.aligned);
    const Float4 more = load4<Block>(addend, first, view.n, view.aligned);
    for (unsigned c = 0; c < 4; ++c) {
      sum.at[c] += scale * more.at[c];
      if (first + c < view.n && magnitude_bits(sum.at[c]) >= infinity_bits)
        Block::lower(&view.control->first_bad, static_cast<std::uint32_t>(first + c));
    }
    store4<Block>(sum, view.values, first, view.n, view.aligned);
  }
};

/// As many blocks as have a tile to look at, and are all at work at once.
template <class Machine>
unsigned selection_blocks(const Machine& machine, std::uint64_t n) {
  const std::uint64_t tiles = std::max<std::uint64_t>(1, ceil_div(n, tile_size));
  return static_cast<unsigned>(std::min<std::uint64_t>({tiles, machine.resident_blocks(), block_threads}));
}

/// Machine: Gpu or Emulator.
template <class Machine>
class SelectionMemory {
 public:
  /// `most_chunks`: of candidates, if there are any.
  SelectionMemory(const Machine& machine, std::uint64_t n, unsigned histograms, std::uint64_t most_chunks = 0)
      : n_(n),
        blocks_(selection_blocks(machine, n)),
        control_(1),
        arrivals_(most_launches),
        histograms_(std::size_t{histograms} * bins),
        chunk_counts_(std::max<std::uint64_t>(most_chunks, ceil_div(n, chunk_size))) {
    const Control nothing;
    control_.upload(std::span(&nothing, 1));
  }

  unsigned blocks() const { return blocks_; }
  SelectionView view(float* values, const float* addend, std::uint32_t k) {
    return {.values = values,
            .n = n_,
            .k = k,
            .aligned = can_vectorise(values, addend),
            .control = control_.data(),
            .chunk_counts = chunk_counts_.data(),
            .chunks = nullptr,
            .page_values = nullptr,
            .page_positions = nullptr};
  }
  Begin begin(const SelectionView& view) {
    return {view, histograms_.data(), static_cast<std::uint32_t>(histograms_.size()), arrivals_.data()};
  }
  std::uint32_t* histogram(unsigned number) { return histograms_.data() + std::size_t{number} * bins; }
  std::uint32_t* arrivals(unsigned number) { return arrivals_.data() + number; }

  /// Where the machine keeps what `control` returns.
  const Control* control_block() const { return control_.data(); }
  Control control() const {
    Control control;
    control_.download(std::span(&control, 1));
    return control;
  }

 private:
  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  std::uint64_t n_;
  unsigned blocks_;
  Buffer<Control> control_;
  Buffer<std::uint32_t> arrivals_;
  Buffer<std::uint32_t> histograms_;  // (histograms, bins)
  Buffer<std::uint64_t> chunk_counts_;
};

}  // namespace hearsay::device

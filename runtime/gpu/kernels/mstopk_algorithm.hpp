#pragma once
// MSTopK on the GPU, as published: bisection for a threshold by passes that count, then a slice to make up k.
// The equation, citation and deviations are those of sparsify/selectors/mstopk.cpp. The result is the same as there,
// except that the mean is summed in another order, which depends on the number of blocks: where rounding changes its last
// bit, the thresholds may differ by as much. The slice begins at draw % (band − missing + 1).
// Cost: steps + 4 launches; steps + 3 reads of the values (fewer if a count happens to be k). Memory: n / 256 bytes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "runtime/gpu/kernels/emit.hpp"
#include "runtime/gpu/kernels/topk_algorithm.hpp"

namespace hearsay::device {

/// Thresholds around the k-th largest magnitude, and how many values lie at or above each.
struct Bracket {
  double low, high;    // of the bisection
  float upper, lower;  // thresholds
  std::uint32_t from_upper, from_lower;
};

/// Mean and largest of all magnitudes; starts the bracket.
struct MeanAndMost {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    double sums[block_threads];
    std::int32_t most[block_threads];
  };
  SelectionView view;
  Bracket* bracket;
  double* block_sums;        // one a block of the grid, which has no more blocks than threads
  std::int32_t* block_most;  // magnitude bits
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    typename Block::template PerThread<double> sums;
    typename Block::template PerThread<std::int32_t> most;
    const auto plus = [](double a, double b) { return a + b; };
    const auto larger = [](std::int32_t a, std::int32_t b) { return a > b ? a : b; };
    block.phase([&](unsigned t) {
      sums[t] = 0.0;
      most[t] = 0;
      for (std::uint64_t chunk = block.index(); chunk < view.all_chunks(); chunk += block.blocks())
        look<Block>(quad_of<Block>(view, false, chunk, t), sums[t], most[t]);
    });
    const double sum_here = reduce(block, shared.sums, sums, plus);
    const std::int32_t most_here = reduce(block, shared.most, most, larger);
    block.phase([&](unsigned t) {
      if (t != 0) return;
      block_sums[block.index()] = sum_here;
      block_most[block.index()] = most_here;
    });
    if (!block.is_last(arrivals)) return;
    block.phase([&](unsigned t) {
      sums[t] = t < block.blocks() ? block_sums[t] : 0.0;
      most[t] = t < block.blocks() ? block_most[t] : 0;
    });
    const double sum = reduce(block, shared.sums, sums, plus);
    const std::int32_t largest = reduce(block, shared.most, most, larger);
    block.phase([&](unsigned t) {
      if (t == 0) start(sum, float_of(largest));
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void look(const Quad& quad, double& sum, std::int32_t& most) const {
    for (unsigned c = 0; c < 4; ++c) {  // a constant, so that the values stay in registers
      if (c >= quad.count) break;
      const std::int32_t bits = magnitude_bits(quad.values.at[c]);
      if (bits >= infinity_bits) Block::lower(&view.control->first_bad, quad.position(c));
      sum += float_of(bits);
      most = bits > most ? bits : most;
    }
  }
  HEARSAY_DEVICE void start(double sum, float most) const {
    view.control->chunks = static_cast<std::uint32_t>(view.all_chunks());
    *bracket = {sum / static_cast<double>(view.n), most, float_of(infinity_bits), 0.0F, 0,
                static_cast<std::uint32_t>(view.n)};
  }
};

/// One halving of the range of thresholds.
struct Halve {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    std::uint32_t counts[block_threads];
  };
  SelectionView view;
  Bracket* bracket;
  std::uint32_t* arrivals;  // starts as 0, and is 0 again afterwards

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const Bracket before = block.read(bracket);
    const std::uint32_t bad = block.read(&view.control->first_bad);
    if (bad != no_position || before.from_upper == view.k) return;
    const double middle = (before.low + before.high) / 2;
    const auto threshold = static_cast<float>(middle);
    const std::int32_t least = magnitude_bits(threshold);
    typename Block::template PerThread<std::uint32_t> counts;
    block.phase([&](unsigned t) {
      counts[t] = 0;
      for (std::uint64_t chunk = block.index(); chunk < view.all_chunks(); chunk += block.blocks()) {
        const Quad quad = quad_of<Block>(view, false, chunk, t);
        for (unsigned c = 0; c < 4; ++c)
          counts[t] += c < quad.count && magnitude_bits(quad.values.at[c]) >= least ? 1 : 0;
      }
    });
    const std::uint32_t count =
        reduce(block, shared.counts, counts, [](std::uint32_t a, std::uint32_t b) { return a + b; });
    block.phase([&](unsigned t) {
      if (t == 0 && count > 0) Block::add(&view.control->candidates, count);
    });
    if (!block.is_last(arrivals)) return;
    block.phase([&](unsigned t) {
      if (t == 0) narrow(before, middle, threshold);
    });
  }

 private:
  HEARSAY_DEVICE void narrow(Bracket now, double middle, float threshold) const {
    const std::uint32_t count = view.control->candidates;
    if (count <= view.k) {
      now.high = middle;
      now.upper = threshold;
      now.from_upper = count;
    } else {
      now.low = middle;
      now.lower = threshold;
      now.from_lower = count;
    }
    *bracket = now;
    view.control->candidates = 0;
    *arrivals = 0;
  }
};

/// The cut: all from `upper`, and a slice of the band that makes up k.
struct ChooseSlice {
  static constexpr unsigned threads = 32;
  struct Shared {};
  SelectionView view;
  const Bracket* bracket;
  std::uint64_t draw;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      if (t != 0) return;
      const std::uint32_t missing = view.k - bracket->from_upper;
      const std::uint32_t band = bracket->from_lower - bracket->from_upper;
      const auto first = static_cast<std::uint32_t>(draw % (std::uint64_t{band} - missing + 1));
      view.control->cut = {magnitude_bits(bracket->upper), magnitude_bits(bracket->lower), first, missing};
    });
  }
};

template <class Machine>
class MsTopK {
 public:
  /// For n < 2³² values.
  MsTopK(Machine& machine, std::uint64_t n)
      : n_(n),
        blocks_(std::min(machine.resident_blocks(), block_threads)),
        control_(1),
        arrivals_(most_launches),
        bracket_(1),
        chunk_counts_(ceil_div(n, chunk_size)),
        block_sums_(blocks_),
        block_most_(blocks_) {
    const Control nothing;
    control_.upload(std::span(&nothing, 1));
  }

  /// `draw`: random bits, from which the slice is chosen. `values` are left as they are.
  void select(Machine& machine, float* values, std::uint32_t k, unsigned steps, std::uint64_t draw,
              const Entries& entries) {
    const SelectionView view{.values = values,
                             .n = n_,
                             .k = k,
                             .aligned = can_vectorise(values),
                             .control = control_.data(),
                             .chunk_counts = chunk_counts_.data(),
                             .chunks = nullptr,
                             .page_values = nullptr,
                             .page_positions = nullptr};
    std::uint32_t* const arrivals = arrivals_.data();
    machine.run(1, Begin{control_.data(), nullptr, 0, arrivals, k});
    machine.run(blocks_, MeanAndMost{view, bracket_.data(), block_sums_.data(), block_most_.data(), arrivals});
    for (unsigned step = 0; step < steps; ++step) machine.run(blocks_, Halve{view, bracket_.data(), arrivals + 1});
    machine.run(1, ChooseSlice{view, bracket_.data(), draw});
    machine.run(blocks_, CountChunks{view, arrivals + 2});
    machine.run(blocks_, Emit{view, entries.positions, entries.values, false});
  }

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
  Buffer<Bracket> bracket_;
  Buffer<std::uint64_t> chunk_counts_;
  Buffer<double> block_sums_;
  Buffer<std::int32_t> block_most_;
};

}  // namespace hearsay::device

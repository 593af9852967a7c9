#pragma once
// The bisection of `mstopk` on the GPU, fused with the addition of the gradient.
//   r ← r + scale · g;  a threshold between mean and maximum of |r| by `steps` halvings;  what lies above, and a slice
//   of the band below it, k in all, written ascending;  r ← 0 there
// As sparsify/selectors/mstopk.cpp, bit for bit: the mean is added in the order of sparsify/quantisers/sides.hpp, the
// halvings are those of sparsify/search/bisection.hpp, and the slice begins where the same draws say.
// Deviates from the article (shi2021towards) in: a pass counts for all thresholds that the next four halvings can ask
// for, 15 of them, so 30 halvings are 8 passes.
// Cost: two launches, one more for every 32 halvings after the first 32; 12 bytes a value to add and measure, 4 a pass,
// until the count is k, and 8 for the entries. Memory: n / 256 bytes.
#include <algorithm>
#include <cstdint>

#include "runtime/gpu/kernels/emit.hpp"
#include "runtime/gpu/kernels/selection_memory.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "sparsify/search/bisection.hpp"

namespace hearsay::device {

static_assert(partial_sums == block_threads);

constexpr unsigned halvings = 4;                  // that a pass counts for
constexpr unsigned asked = (1U << halvings) - 1;  // thresholds; after i comes 2i + 2 where it had too many, else 2i + 1
constexpr unsigned passes_of_launch = 8;

/// What a bisection keeps beside the selection's memory. Pointers are the GPU's.
struct BisectionView {
  Bisection* now;
  double* sums;             // of every piece's magnitudes
  std::int32_t* largest;    // magnitude bits of every piece
  std::uint32_t* counts;    // of every threshold of a pass; zeros between two passes
  std::uint32_t* arrivals;  // of the pass; 0 between two of them
  Draws draws;
  std::uint32_t steps;

  HEARSAY_DEVICE void cut(Control& control, std::uint32_t k) const {
    const Slice slice = slice_of(now->bracket, k, draws);
    control.cut = {magnitude_bits(now->bracket.upper), magnitude_bits(now->bracket.lower), slice.first, slice.count};
  }
};

/// r ← r + scale · g; mean and maximum of the magnitudes are where the bisection begins.
struct AddAndMeasure {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    double sums[block_threads];
    std::int32_t largest[block_threads];
  };
  SelectionView view;
  BisectionView bisection;
  const float* addend;
  float scale;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    typename Block::template PerThread<double> sums;
    typename Block::template PerThread<std::int32_t> largest;
    for (std::uint64_t piece = block.index(); piece < pieces(); piece += block.blocks()) {
      block.phase([&](unsigned t) { add<Block>(piece * values_of_piece, t, sums[t], largest[t]); });
      const double sum = reduce(block, shared.sums, sums, add_up);
      const std::int32_t most = reduce(block, shared.largest, largest, larger);
      block.phase([&](unsigned t) {
        if (t == 0) bisection.sums[piece] = sum, bisection.largest[piece] = most;
      });
    }
    if (block.is_last(bisection.arrivals)) begin(block, shared);
  }

 private:
  static HEARSAY_DEVICE double add_up(double a, double b) { return a + b; }
  static HEARSAY_DEVICE std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }
  HEARSAY_DEVICE std::uint64_t pieces() const { return ceil_div(view.n, values_of_piece); }

  template <class Block>
  HEARSAY_DEVICE void add(std::uint64_t first, unsigned t, double& sum, std::int32_t& largest) const {
    sum = 0.0, largest = 0;
    for (unsigned j = 0; j < values_of_partial_sum; ++j) {
      const std::uint64_t i = first + place_in_piece(t, j);
      if (i >= view.n) return;
      const float value = view.values[i] + scale * addend[i];
      view.values[i] = value;
      const std::int32_t bits = magnitude_bits(value);
      sum += static_cast<double>(float_of(bits));
      largest = larger(largest, bits);
      if (bits >= infinity_bits) Block::lower(&view.control->first_bad, static_cast<std::uint32_t>(i));
    }
  }

  template <class Block>
  HEARSAY_DEVICE void begin(Block& block, Shared& shared) const {
    typename Block::template PerThread<double> sums;
    typename Block::template PerThread<std::int32_t> largest;
    block.phase([&](unsigned t) {
      sums[t] = 0.0, largest[t] = 0;
      for (std::uint64_t piece = t; piece < pieces(); piece += Block::threads) {
        sums[t] += bisection.sums[piece];
        largest[t] = larger(largest[t], bisection.largest[piece]);
      }
    });
    const double sum = reduce(block, shared.sums, sums, add_up);
    const std::int32_t most = reduce(block, shared.largest, largest, larger);
    block.phase([&](unsigned t) {
      if (t < asked) bisection.counts[t] = 0;
      if (t != 0) return;
      const Halving all{sum / static_cast<double>(view.n), static_cast<double>(float_of(most))};
      *bisection.now = {all, {.from_lower = static_cast<std::uint32_t>(view.n)}, bisection.steps};
      *bisection.arrivals = 0;
    });
  }
};

/// One pass: counts for the thresholds of the next halvings, which the last block then makes.
struct Halve {
  static constexpr unsigned threads = block_threads;
  struct Shared {
    std::int32_t least[asked];
  };
  SelectionView view;
  BisectionView bisection;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    if (block.read(view.control).failed() || view.k == 0) return;
    const Bisection now = block.read(bisection.now);
    if (now.done(view.k)) return;
    block.phase([&](unsigned t) {
      if (t < asked) shared.least[t] = threshold(now.range, t);
    });
    typename Block::template PerThread<Counts> counts;
    block.phase([&](unsigned t) { counts[t] = count<Block>(block.index(), block.blocks(), shared, t); });
    for (unsigned pair = 0; pair < pairs; ++pair) add(block, counts, pair);
    if (block.is_last(bisection.arrivals)) move(block, now);
  }

 private:
  static constexpr unsigned pairs = (asked + 1) / 2;
  /// Two counts in a word, so that both are added up at once. A block's stay below 2³², as n does.
  struct Counts {
    std::uint64_t of_pair[pairs];
  };

  /// Magnitude bits from which a value counts: that of the halving that is reached along the bits of number + 1.
  static HEARSAY_DEVICE std::int32_t threshold(Halving range, unsigned number) {
    unsigned level = 0;
    while ((number + 1) >> (level + 1) != 0) ++level;
    while (level-- > 0) range = range.half(((number + 1) >> level & 1U) != 0);
    return magnitude_bits(static_cast<float>(range.middle()));
  }

  template <class Block>
  HEARSAY_DEVICE Counts count(unsigned index, unsigned blocks, const Shared& shared, unsigned t) const {
    std::int32_t least[asked];
    std::uint32_t found[asked + 1] = {};
    for (unsigned i = 0; i < asked; ++i) least[i] = shared.least[i];
    for (std::uint64_t chunk = index; chunk < view.all_chunks(); chunk += blocks) {
      const Quad quad = quad_of<Block>(view, false, chunk, t);
      for (unsigned c = 0; c < 4; ++c) {
        const std::int32_t bits = c < quad.count ? magnitude_bits(quad.values.at[c]) : -1;
        for (unsigned i = 0; i < asked; ++i) found[i] += bits >= least[i] ? 1U : 0U;
      }
    }
    Counts counts;
    for (unsigned pair = 0; pair < pairs; ++pair)
      counts.of_pair[pair] = found[2 * pair] | std::uint64_t{found[2 * pair + 1]} << 32;
    return counts;
  }

  template <class Block>
  HEARSAY_DEVICE void add(Block& block, typename Block::template PerThread<Counts>& counts, unsigned pair) const {
    typename Block::template PerThread<std::uint64_t> both;
    block.phase([&](unsigned t) { both[t] = counts[t].of_pair[pair]; });
    const std::uint64_t sum = block.exclusive_scan(both);
    block.phase([&](unsigned t) {
      const unsigned number = 2 * pair + t;
      if (t < 2 && number < asked) Block::add(bisection.counts + number, static_cast<std::uint32_t>(sum >> (32 * t)));
    });
  }

  template <class Block>
  HEARSAY_DEVICE void move(Block& block, const Bisection& now) const {
    block.phase([&](unsigned t) {
      if (t != 0) return;
      Bisection next = now;
      for (unsigned number = 0; number < asked && !next.done(view.k);)
        number = 2 * number + (next.take(bisection.counts[number], view.k) ? 2 : 1);
      *bisection.now = next;
      bisection.cut(*view.control, view.k);
      *bisection.arrivals = 0;
    });
    block.phase([&](unsigned t) {
      if (t < asked) bisection.counts[t] = 0;
    });
  }
};

/// The selection of one run of n values, with its memory. Machine: Gpu or Emulator.
template <class Machine>
class MsTopK {
 public:
  MsTopK(const Machine& machine, std::uint64_t n)
      : memory_(machine, n, 0),
        now_(1),
        sums_(ceil_div(n, values_of_piece)),
        largest_(ceil_div(n, values_of_piece)),
        counts_(asked) {}

  void add_and_select(Machine& machine, float* values, const float* addend, float scale, std::uint32_t k,
                      const Search& search, const Entries& entries) {
    const SelectionView view = memory_.view(values, addend, k);
    const Halve halve{view, bisection(search)};
    machine.run_in_turn(memory_.blocks(), memory_.begin(view), AddAndMeasure{view, halve.bisection, addend, scale},
                        halve, halve, halve, halve, halve, halve, halve, halve);
    for (std::uint32_t done = passes_of_launch * halvings; done < search.steps; done += passes_of_launch * halvings)
      machine.run_in_turn(memory_.blocks(), halve, halve, halve, halve, halve, halve, halve, halve);
    machine.run_in_turn(memory_.blocks(), CountChunks<CountIsAll>{view, memory_.arrivals(1)}, Emit{view, entries});
  }
  const SelectionMemory<Machine>& memory() const { return memory_; }

 private:
  BisectionView bisection(const Search& search) {
    return {.now = now_.data(),
            .sums = sums_.data(),
            .largest = largest_.data(),
            .counts = counts_.data(),
            .arrivals = memory_.arrivals(0),
            .draws = search.draws,
            .steps = search.steps};
  }

  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  SelectionMemory<Machine> memory_;
  Buffer<Bisection> now_;
  Buffer<double> sums_;
  Buffer<std::int32_t> largest_;
  Buffer<std::uint32_t> counts_;
};

}  // namespace hearsay::device

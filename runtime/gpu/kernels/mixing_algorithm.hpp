#pragma once
// x ← w_ii x + Σ_j w_ij x̂_j on the GPU: the product with one row of W, and the step along a difference of two copies.
// The same bits as mix_row and add_difference on the processor: each element is multiplied and added in the order of
// the edges, and nothing is fused (the CUDA sources are compiled with --fmad=false).
// Cost: deg + 2 passes over the block for up to 8 neighbours, one launch; 2 passes more for every further 8.
#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

constexpr unsigned mix_threads = 256;
constexpr unsigned mix_rows = 4;                            // Float4s a thread
constexpr unsigned mix_piece = mix_rows * 4 * mix_threads;  // values of a block at a time
constexpr unsigned edges_at_once = 8;

/// A neighbour's copy and its weight w_ij.
struct WeightedCopy {
  const float* values;
  float weight;
};

struct MixRow {
  static constexpr unsigned threads = mix_threads;
  struct Shared {};
  float* x;
  std::uint64_t n;
  bool aligned;  // x and all copies
  float self_weight;
  WeightedCopy edges[edges_at_once];
  unsigned degree;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      for (std::uint64_t piece = block.index(); piece * mix_piece < n; piece += block.blocks())
        mix<Block>(piece * mix_piece + 4 * t);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void mix(std::uint64_t first) const {
    Float4 own[mix_rows];
    for (unsigned row = 0; row < mix_rows; ++row) {
      own[row] = load4<Block>(x, first + row * 4 * mix_threads, n, aligned);
      for (float& value : own[row].at) value *= self_weight;
    }
    for (unsigned edge = 0; edge < degree; ++edge) {
      const float weight = edges[edge].weight;
      Float4 theirs[mix_rows];
      for (unsigned row = 0; row < mix_rows; ++row)
        theirs[row] = load4<Block>(edges[edge].values, first + row * 4 * mix_threads, n, aligned);
      for (unsigned row = 0; row < mix_rows; ++row)
        for (unsigned c = 0; c < 4; ++c) own[row].at[c] += weight * theirs[row].at[c];
    }
    for (unsigned row = 0; row < mix_rows; ++row) store4<Block>(own[row], x, first + row * 4 * mix_threads, n, aligned);
  }
};

/// x ← x + weight · (theirs − ours).
struct AddDifference {
  static constexpr unsigned threads = mix_threads;
  struct Shared {};
  float* x;
  const float* theirs;
  const float* ours;
  std::uint64_t n;
  bool aligned;
  float weight;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      for (std::uint64_t piece = block.index(); piece * mix_piece < n; piece += block.blocks())
        add<Block>(piece * mix_piece + 4 * t);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void add(std::uint64_t first) const {
    Float4 own[mix_rows], a[mix_rows], b[mix_rows];
    for (unsigned row = 0; row < mix_rows; ++row) {
      const std::uint64_t at = first + row * 4 * mix_threads;
      own[row] = load4<Block>(x, at, n, aligned);
      a[row] = load4<Block>(theirs, at, n, aligned);
      b[row] = load4<Block>(ours, at, n, aligned);
    }
    for (unsigned row = 0; row < mix_rows; ++row) {
      for (unsigned c = 0; c < 4; ++c) own[row].at[c] += weight * (a[row].at[c] - b[row].at[c]);
      store4<Block>(own[row], x, first + row * 4 * mix_threads, n, aligned);
    }
  }
};

/// x ← x / by, rounded as the processor's division.
struct Divide {
  static constexpr unsigned threads = mix_threads;
  struct Shared {};
  float* x;
  std::uint64_t n;
  bool aligned;
  float by;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      const std::uint64_t step = std::uint64_t{block.blocks()} * 4 * mix_threads;
      for (std::uint64_t first = (std::uint64_t{block.index()} * mix_threads + t) * 4; first < n; first += step) {
        Float4 values = load4<Block>(x, first, n, aligned);
        for (float& value : values.at) value /= by;
        store4<Block>(values, x, first, n, aligned);
      }
    });
  }
};

/// Blocks for pieces of `n` values: no more than are resident at once.
template <class Machine>
unsigned mixing_blocks(const Machine& machine, std::uint64_t n) {
  return static_cast<unsigned>(std::min<std::uint64_t>(ceil_div(n, mix_piece), 2 * machine.resident_blocks()));
}

/// All pointers are in the machine's memory; n values each.
template <class Machine>
void mix_row(Machine& machine, float self_weight, std::span<const WeightedCopy> edges, float* x, std::uint64_t n) {
  do {
    const std::size_t now = std::min<std::size_t>(edges.size(), edges_at_once);
    MixRow kernel{.x = x, .n = n, .aligned = can_vectorise(x), .self_weight = self_weight, .edges = {}, .degree = 0};
    for (const WeightedCopy& edge : edges.first(now)) {
      kernel.aligned = kernel.aligned && can_vectorise(edge.values);
      kernel.edges[kernel.degree++] = edge;
    }
    machine.run(mixing_blocks(machine, n), kernel);
    edges = edges.subspan(now);
    self_weight = 1.0F;  // further neighbours are added to what there is
  } while (!edges.empty());
}

template <class Machine>
void divide(Machine& machine, float by, float* x, std::uint64_t n) {
  machine.run(mixing_blocks(machine, n), Divide{x, n, can_vectorise(x), by});
}

template <class Machine>
void add_difference(Machine& machine, float weight, const float* theirs, const float* ours, float* x, std::uint64_t n) {
  machine.run(mixing_blocks(machine, n),
              AddDifference{x, theirs, ours, n, can_vectorise(theirs, ours) && can_vectorise(x), weight});
}

}  // namespace hearsay::device

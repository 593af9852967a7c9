#pragma once
// ‖x_s‖₂, or ‖x_s − y_s‖₂, of all segments of a replica in one pass: what triggers decide by.
//
// The block of parameters is cut into pieces of 16384 values at multiples of that, and at the segments' ends. A block
// of threads sums the squares of a piece in double, thread t those of positions 4t … 4t + 3 modulo 1024 in order, then
// the threads pairwise; a second launch sums the pieces of each segment alike. The order is fixed: the same layout
// gives the same bits on every GPU and in its emulation. It is not the order of hearsay::norm, whose 16 lanes are too
// few for a GPU: squares are exact in double and all terms are ≥ 0, so both are within `norm_error` of the exact value,
// and equal wherever no sum is rounded. Differences are taken in float, as the processor's.
// Cost: 4 bytes a value, 8 of a difference, and 2 flops in double; 2 launches.
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

constexpr unsigned norm_threads = 256;
constexpr unsigned norm_rows = 16;  // of 4 · norm_threads values
constexpr std::uint64_t piece_size = std::uint64_t{norm_rows} * 4 * norm_threads;

/// [offset, offset + length) of the block.
struct SegmentRange {
  std::uint64_t offset, length;
};

/// The values [first, end) of one segment, all between two multiples of piece_size.
struct Piece {
  std::uint64_t first, end;
};

inline std::vector<Piece> pieces_of(const SegmentRange& segment) {
  std::vector<Piece> pieces;
  const std::uint64_t end = segment.offset + segment.length;
  for (std::uint64_t first = segment.offset; first < end; first = pieces.back().end) {
    const std::uint64_t boundary = (first / piece_size + 1) * piece_size;
    pieces.push_back({first, boundary < end ? boundary : end});
  }
  return pieces;
}

/// Relative error of a segment's norm, by the longest chain of rounded additions: a thread's values, the tree, a
/// thread's pieces, the tree again, and the root.
inline double norm_error(std::uint64_t length) {
  const double chain =
      4.0 * norm_rows + 8.0 + std::ceil(double(length) / double(piece_size * norm_threads)) + 1.0 + 8.0;
  return (chain / 2 + 1) * 0x1p-53 * 1.01;
}

/// Sums of values², or of (values − subtracted)².
template <bool of_difference>
struct SquareSums {
  static constexpr unsigned threads = norm_threads;
  struct Shared {
    double sums[norm_threads];
  };
  const float* values;
  const float* subtracted;  // null without a difference
  bool aligned;
  const Piece* pieces;  // one a block
  double* sums;         // one a piece

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const Piece piece = block.read(pieces + block.index());
    typename Block::template PerThread<double> squares;
    block.phase([&](unsigned t) { squares[t] = sum_of<Block>(piece, t); });
    const double sum = reduce(block, shared.sums, squares, [](double a, double b) { return a + b; });
    block.phase([&](unsigned t) {
      if (t == 0) sums[block.index()] = sum;
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE double sum_of(const Piece& piece, unsigned t) const {
    constexpr unsigned together = 4;  // rows whose loads are under way at the same time
    constexpr std::uint64_t row_size = 4 * norm_threads;
    double sum = 0.0;
    for (std::uint64_t row = piece.first / piece_size * piece_size; row < piece.end; row += together * row_size) {
      Float4 loaded[together];
      for (unsigned i = 0; i < together; ++i) loaded[i] = load<Block>(piece, row + i * row_size + 4 * t);
      for (unsigned i = 0; i < together; ++i) {
        for (unsigned c = 0; c < 4; ++c) {
          const double value = loaded[i].at[c];
          sum += value * value;
        }
      }
    }
    return sum;
  }

  /// What is squared at [first, first + 4).
  template <class Block>
  HEARSAY_DEVICE Float4 load(const Piece& piece, std::uint64_t first) const {
    Float4 loaded = load_of<Block>(values, piece, first);
    if constexpr (of_difference) {
      const Float4 minus = load_of<Block>(subtracted, piece, first);
      for (unsigned c = 0; c < 4; ++c) loaded.at[c] -= minus.at[c];
    }
    return loaded;
  }
  /// from[first, first + 4), with 0 for what is not of the piece.
  template <class Block>
  HEARSAY_DEVICE Float4 load_of(const float* from, const Piece& piece, std::uint64_t first) const {
    if (aligned && piece.first <= first && first + 4 <= piece.end) return Block::load(from + first);
    Float4 loaded;
    for (unsigned c = 0; c < 4; ++c)
      loaded.at[c] = piece.first <= first + c && first + c < piece.end ? from[first + c] : 0.0F;
    return loaded;
  }
};

struct FinishNorms {
  static constexpr unsigned threads = norm_threads;
  struct Shared {
    double sums[norm_threads];
  };
  const double* piece_sums;
  const std::uint32_t* piece_ends;  // of every segment, one a block: its pieces end here
  double* norms;                    // one a segment

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const std::uint32_t first = block.index() == 0 ? 0 : block.read(piece_ends + block.index() - 1);
    const std::uint32_t end = block.read(piece_ends + block.index());
    typename Block::template PerThread<double> sums;
    block.phase([&](unsigned t) {
      sums[t] = 0.0;
      for (std::uint32_t piece = first + t; piece < end; piece += norm_threads) sums[t] += piece_sums[piece];
    });
    const double sum = reduce(block, shared.sums, sums, [](double a, double b) { return a + b; });
    block.phase([&](unsigned t) {
      if (t == 0) norms[block.index()] = std::sqrt(sum);
    });
  }
};

/// The norms of a replica's segments, with the plan of its pieces. Machine: Gpu or Emulator.
template <class Machine>
class Norms {
 public:
  explicit Norms(std::span<const SegmentRange> segments) : segments_(segments.size()) {
    std::vector<Piece> pieces;
    std::vector<std::uint32_t> ends;
    for (const SegmentRange& segment : segments) {
      for (const Piece& piece : pieces_of(segment)) pieces.push_back(piece);
      ends.push_back(static_cast<std::uint32_t>(pieces.size()));
    }
    pieces_ = Buffer<Piece>(pieces.size());
    pieces_.upload(std::span<const Piece>(pieces));
    ends_ = Buffer<std::uint32_t>(ends.size());
    ends_.upload(std::span<const std::uint32_t>(ends));
    sums_ = Buffer<double>(pieces.size());
  }

  /// `values`: the whole block, `norms`: one a segment, both in the machine's memory.
  void compute(Machine& machine, const float* values, double* norms) { run<false>(machine, values, nullptr, norms); }
  /// Those of values − subtracted, both whole blocks.
  void compute_of_difference(Machine& machine, const float* values, const float* subtracted, double* norms) {
    run<true>(machine, values, subtracted, norms);
  }

 private:
  template <bool of_difference>
  void run(Machine& machine, const float* values, const float* subtracted, double* norms) {
    machine.run(
        static_cast<unsigned>(pieces_.size()),
        SquareSums<of_difference>{values, subtracted, can_vectorise(values, subtracted), pieces_.data(), sums_.data()});
    machine.run(static_cast<unsigned>(segments_), FinishNorms{sums_.data(), ends_.data(), norms});
  }

  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  std::size_t segments_;
  Buffer<Piece> pieces_;
  Buffer<std::uint32_t> ends_;  // of every segment's pieces
  Buffer<double> sums_;
};

}  // namespace hearsay::device

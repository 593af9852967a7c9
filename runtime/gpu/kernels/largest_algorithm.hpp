#pragma once
// max |x_i − x̂_i| of every segment in one pass, by which the trigger of single values decides. Magnitudes are compared
// by their bits, so the order does not matter: the same as largest_difference on the processor, NaN above ∞ above all.
// Cost: 8 bytes a value; 2 launches, however many segments there are.
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/kernels/changes.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay::device {

/// largest ← magnitude bits of the largest change of each piece.
struct LargestOfPieces {
  static constexpr unsigned threads = norm_threads;
  struct Shared {
    std::int32_t largest[norm_threads];
  };
  Changes changes;
  std::int32_t* largest;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const Piece piece = block.read(changes.pieces + block.index());
    typename Block::template PerThread<std::int32_t> most;
    block.phase([&](unsigned t) {
      most[t] = 0;
      for (std::uint64_t row = piece.first / piece_size * piece_size; row < piece.end; row += change_row) {
        const Float4 found = changes.at<Block>(piece, row + 4 * t);
        for (unsigned c = 0; c < 4; ++c) {
          const std::int32_t bits = magnitude_bits(found.at[c]);
          if (bits > most[t]) most[t] = bits;
        }
      }
    });
    const std::int32_t all =
        reduce(block, shared.largest, most, [](std::int32_t a, std::int32_t b) { return a > b ? a : b; });
    block.phase([&](unsigned t) {
      if (t == 0) largest[block.index()] = all;
    });
  }
};

/// largest_of_segments ← that of its pieces.
struct LargestOfSegments {
  static constexpr unsigned threads = norm_threads;
  struct Shared {
    std::int32_t largest[norm_threads];
  };
  const std::int32_t* of_pieces;
  const std::uint32_t* end;
  double* of_segments;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    const std::uint32_t first = block.index() == 0 ? 0 : block.read(end + block.index() - 1);
    const std::uint32_t last = block.read(end + block.index());
    typename Block::template PerThread<std::int32_t> most;
    block.phase([&](unsigned t) {
      most[t] = 0;
      for (std::uint32_t piece = first + t; piece < last; piece += Block::threads)
        if (of_pieces[piece] > most[t]) most[t] = of_pieces[piece];
    });
    const std::int32_t all =
        reduce(block, shared.largest, most, [](std::int32_t a, std::int32_t b) { return a > b ? a : b; });
    block.phase([&](unsigned t) {
      if (t == 0) of_segments[block.index()] = float_of(all);
    });
  }
};

/// The largest changes of a replica's segments, with the plan of its pieces. Machine: Gpu or Emulator.
template <class Machine>
class LargestChanges {
 public:
  explicit LargestChanges(std::span<const SegmentRange> segments) {
    std::vector<Piece> pieces;
    std::vector<std::uint32_t> end;
    for (const SegmentRange& segment : segments) {
      for (const Piece& piece : pieces_of(segment)) pieces.push_back(piece);
      end.push_back(static_cast<std::uint32_t>(pieces.size()));
    }
    pieces_ = Buffer<Piece>(pieces.size());
    pieces_.upload(std::span<const Piece>(pieces));
    end_ = Buffer<std::uint32_t>(end.size());
    end_.upload(std::span<const std::uint32_t>(end));
    of_pieces_ = Buffer<std::int32_t>(pieces.size());
  }

  /// x and copy: whole blocks; largest: one a segment. All in the machine's memory.
  void compute(Machine& machine, const float* x, const float* copy, double* largest) {
    machine.run(static_cast<unsigned>(pieces_.size()),
                LargestOfPieces{changes_of(x, copy, pieces_.data()), of_pieces_.data()});
    machine.run(static_cast<unsigned>(end_.size()), LargestOfSegments{of_pieces_.data(), end_.data(), largest});
  }

 private:
  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  Buffer<Piece> pieces_;
  Buffer<std::uint32_t> end_;
  Buffer<std::int32_t> of_pieces_;
};

}  // namespace hearsay::device

#pragma once
// The changes of a replica against a copy, x − x̂, as kernels see them that look at all segments together: in the
// pieces of norms_algorithm.hpp, one a block, row by row.
#include <cstdint>

#include "runtime/gpu/kernels/norms_algorithm.hpp"

namespace hearsay::device {

constexpr std::uint64_t change_row = 4 * norm_threads;  // values that a block looks at together: four a thread

/// Passed by value; pointers are the GPU's.
struct Changes {
  const float* x;
  const float* copy;
  bool aligned;         // both
  const Piece* pieces;  // one a block

  /// Those at [first, first + 4), with 0 for what is not of the piece.
  template <class Block>
  HEARSAY_DEVICE Float4 at(const Piece& piece, std::uint64_t first) const {
    Float4 found;
    if (aligned && piece.first <= first && first + 4 <= piece.end) {
      found = Block::load(x + first);
      const Float4 minus = Block::load(copy + first);
      for (unsigned c = 0; c < 4; ++c) found.at[c] -= minus.at[c];
      return found;
    }
    for (unsigned c = 0; c < 4; ++c)
      found.at[c] = piece.first <= first + c && first + c < piece.end ? x[first + c] - copy[first + c] : 0.0F;
    return found;
  }
};

inline Changes changes_of(const float* x, const float* copy, const Piece* pieces) {
  return {.x = x, .copy = copy, .aligned = can_vectorise(x, copy), .pieces = pieces};
}

}  // namespace hearsay::device

#pragma once
// Bytes of any length, cut: MPI's counts are ints.
#include <algorithm>
#include <cstddef>
#include <span>

namespace hearsay::mpi {

/// Bytes that one call of MPI is given at most.
inline constexpr std::size_t longest_piece = std::size_t{1} << 30;

/// Calls `each` with the pieces of `values`, in order, all but the last of `piece_bytes` (at least one value's).
template <class T, class Each>
void for_each_piece(std::span<T> values, std::size_t piece_bytes, Each each) {
  const std::size_t piece = std::max<std::size_t>(piece_bytes / sizeof(T), 1);
  for (std::size_t done = 0; done < values.size(); done += piece)
    each(values.subspan(done, std::min(piece, values.size() - done)));
}

}  // namespace hearsay::mpi

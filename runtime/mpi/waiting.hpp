#pragma once
// Where a rank waits for MPI. Written twice: in real/ and in simulated/, of which a build has one. Included in
// runtime/mpi/ only.
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace hearsay::mpi {

/// Waits until all `requests` are over, running `idle` meanwhile. False if `seconds` have passed before. In a
/// simulation `idle` is run only if `seconds` is finite: puts arrive without the receiver's help there. Their sender
/// must have none left that others wait for.
bool complete(std::span<MPI_Request> requests, const std::function<void()>& idle,
              double seconds = std::numeric_limits<double>::infinity());

/// Returns when all ranks have come.
void barrier(MPI_Comm communicator, const std::function<void()>& idle);

/// Every rank's `part` on rank 0, one after the other in `all`; `counts`: how many bytes each has, and like `all` rank
/// 0's alone.
void gather(std::span<const std::byte> part, std::span<const int> counts, std::span<std::byte> all,
            MPI_Comm communicator, const std::function<void()>& idle);

/// `count` elements at `values`, summed (or whatever `operation` says) over all ranks in place; the same bits
/// everywhere.
void all_reduce(void* values, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator,
                const std::function<void()>& idle);

/// A message whose length only its sender knows.
struct Expected {
  int from, tag;
  std::size_t most_bytes;  ///< its length is at most this
};
/// Receives one and appends it to `bytes`, running `idle` meanwhile.
void receive_behind(std::vector<std::byte>& bytes, const Expected& expected, MPI_Comm communicator,
                    const std::function<void()>& idle);

}  // namespace hearsay::mpi

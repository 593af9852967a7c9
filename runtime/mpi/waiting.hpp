#pragma once
// Where a rank waits for MPI. Written twice: in real/ and in simulated/, of which a build has one. Included in
// runtime/mpi/ only.
#include <mpi.h>

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

/// `count` elements at `values`, summed (or whatever `operation` says) over all ranks in place; the same bits
/// everywhere.
void all_reduce(void* values, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator,
                const std::function<void()>& idle);

/// Receives a message of unknown length, running `idle` meanwhile.
void receive_any_length(int from, int tag, MPI_Comm communicator, const std::function<void()>& idle,
                        std::vector<std::byte>& in);

}  // namespace hearsay::mpi

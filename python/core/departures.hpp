#pragma once
// Who has left the job, told to everybody: a rank that waits for one that has left would wait for ever.
#include <cstdint>
#include <optional>

#include "runtime/mpi/window.hpp"

namespace hearsay::python {

struct Departure {
  int rank = 0;
  std::int64_t steps = 0;  ///< that it made
};

/// One word a rank, in a window of its own. A rank that leaves writes into everybody's word; of several the last one
/// stays, of which any will do for somebody who waits.
class Departures {
 public:
  /// Collective; calls MPI.
  Departures(mpi::CommunicatorHandle ranks, int rank, int size);
  /// This rank makes no step after `steps` of them. Calls MPI.
  void tell(std::int64_t steps);
  /// Whoever has left. Any thread, at any time; only reads memory.
  std::optional<Departure> seen() const;
  /// Nobody has left after all: all ranks, between two barriers.
  void forget();

 private:
  int rank_, size_;
  mpi::Window window_;
};

}  // namespace hearsay::python

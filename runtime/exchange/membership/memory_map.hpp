#pragma once
// Where things lie in the memory of each process that the others write into: its mailbox, behind that the counts of
// batches, behind those the rows of a failure detector or a pulse. Every process can compute every other's map.
#include <cstddef>

#include "runtime/transport/job_count.hpp"
#include "runtime/transport/mailbox.hpp"

namespace hearsay {

struct MemoryMap {
  std::size_t ring_bytes = 0;   ///< of one ring of a mailbox
  bool counts_batches = false;  ///< asynchronous ranks do; lockstep ranks know how many the others have begun
  int processes = 1;            ///< spares included
  int spares = 0;

  /// Bytes of mailbox and counts of a process with so many neighbours.
  std::size_t behind_counts(std::size_t neighbours) const {
    const std::size_t slots = neighbours + static_cast<std::size_t>(spares);
    const MailboxMap mailbox{.degree = static_cast<int>(slots), .capacity_bytes = ring_bytes};
    return mailbox.total_bytes() + (counts_batches ? JobCount::bytes(slots, processes) : 0);
  }
};

}  // namespace hearsay

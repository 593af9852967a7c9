#pragma once
// What a process knows of the other processes of its job: who lives, who works where, how many batches each has begun.
// What happens to them it carries over to the edges of its own vertex.
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "runtime/exchange/membership/edges.hpp"
#include "runtime/exchange/membership/memory_map.hpp"
#include "runtime/exchange/membership/pulse.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/failure_detector.hpp"
#include "runtime/transport/job_count.hpp"
#include "runtime/transport/mailbox.hpp"
#include "topology/seats.hpp"

namespace hearsay {

/// What the death of a process is to the others.
struct DeathOptions {
  /// They go on without it: whoever has not been heard of for so long is dead. 0: a death is the end of the job.
  std::chrono::nanoseconds failure_timeout{0};
  /// Where it is the end: a process that has not moved for so long while others waited ends the job, too. 0: nobody
  /// looks.
  std::chrono::nanoseconds stall_timeout{0};
  /// So many vertices, the last, are empty at the start.
  int vacant = 0;

  /// Bytes that the rows of a failure detector, or a pulse, add to the memory of a process.
  std::size_t bytes(int processes, int spares) const;
};

class Members {
 public:
  /// All of it must outlive the members.
  Members(RemoteMemory& memory, const MemoryMap& map, const Seats& seats, int process, Mailbox& mailbox, Ledger& ledger,
          const Clock& clock, const DeathOptions& options);

  // --- any thread ---
  /// This process, by the transport's numbers.
  int process() const { return process_; }
  /// Who is alive, and who works where; null unless the job goes on without the dead.
  FailureDetector* failures() const { return failures_.get(); }
  /// Batches that a process has begun, as far as this one knows; in lockstep 0.
  std::uint64_t batches_of(int process) const { return count_ ? count_->of(process) : 0; }
  /// How far the job is, as far as this rank knows, in iterations of all ranks: batches that any of them has begun over
  /// their number. In lockstep k, which this rank is at.
  double job_iterations(Iteration k) const;
  /// The job is done: a rank may stand still from now on (`stall_timeout`).
  void rest();

  // --- computing thread ---
  /// This process begins an iteration.
  void begin_iteration();
  /// Counts of batches; null in lockstep.
  JobCount* count() const { return count_.get(); }
  /// Tells the edges what has happened to the processes at their other ends since the last call.
  void follow(Edges& edges, CommunicationEngine& engine);
  /// A spare sits at this vertex from now on, and begins its edges to those who live.
  void sit(int vertex, Edges& edges, CommunicationEngine& engine);

  // --- communication thread ---
  /// True if anything moved. Throws CommunicationError.
  bool progress();

 private:
  std::vector<std::size_t> rows(const MemoryMap& map) const;
  std::unique_ptr<FailureDetector> make_failure_detector(RemoteMemory& memory, const MemoryMap& map, Ledger& ledger,
                                                         const DeathOptions& options) const;
  void begin_edge(std::size_t edge, int process, Edges& edges, CommunicationEngine& engine);
  void drop_dead();

  const Seats seats_;
  const int process_;
  Mailbox& mailbox_;
  std::unique_ptr<JobCount> count_;            // asynchronous ranks only
  std::unique_ptr<FailureDetector> failures_;  // null: nobody may die
  std::unique_ptr<Pulse> pulse_;               // null: nobody looks, or `failures_` does
  std::vector<int> attached_{};                // who is at the other ends of the edges; the communication thread's
  int dropped_ = 0;                            // deaths that communication knows; its thread's
  int followed_ = 0;                           // of FailureDetector::changes; the computing thread's, as the next
  std::size_t lost_ = 0;                       // deaths that the edges know
};

}  // namespace hearsay

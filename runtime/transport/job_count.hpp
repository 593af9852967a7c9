#pragma once
// How many batches the ranks of a job have begun, and who has made all of its own for now: kept without a barrier, and
// without a rank that the others wait for.
// Spares (seats.hpp) have counts of their own, beside those of the dead whom they replace.
//   every rank:            counts_r of all ranks r as far as it knows; its own rises with every batch
//   with every batch, and when it has heard of others', every few milliseconds:
//                          its counts → words of their own in each neighbour's memory
//   who looks there:       counts_r ← max(counts_r, what lies there)
// Counts only rise. So what is late, or old, or comes twice makes the sum smaller than it is and never larger: nobody
// ends before the job's budget is spent. News crosses an edge in milliseconds; what is begun while it is on its way is
// beyond the budget.
// A word says whether it is whole, its upper half being the lower one's complement: nobody else may look at what is
// being put (remote_memory.hpp).
// Cost: 16 bytes a rank and neighbour with every batch, else at most every `relay_after`; as much memory a neighbour.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"
#include "runtime/transport/remote_memory.hpp"
#include "topology/seats.hpp"

namespace hearsay {

class JobCount {
 public:
  /// Bytes of a rank with so many slots (a neighbour each; seats.hpp) out of so many processes, behind its mailbox.
  static std::size_t bytes(std::size_t slots, int processes) {
    return slots * static_cast<std::size_t>(processes) * words_a_process * sizeof(std::uint64_t);
  }
  /// `ring_bytes`: capacity of the mailboxes' rings, behind which the counts lie on every rank. A spare counts nothing
  /// before it has a vertex.
  JobCount(RemoteMemory& memory, const Seats& seats, int process, std::size_t ring_bytes, Ledger& ledger);

  /// What comes within so long of the last time is passed on together.
  static constexpr std::chrono::milliseconds relay_after{2};

  // --- computing thread ---
  /// This rank begins one more, and tells its neighbours all that it knows.
  void begin_batch();
  /// This rank has made all of its own for now, and has nothing to do but serve until the others have, too. Returns how
  /// often it has said so: every rank says it equally often.
  std::uint64_t stop();
  /// This rank leaves the job, and stops no more.
  void leave();
  /// How often a process has stopped, and whether it has left since, as far as this rank knows.
  std::uint64_t stops_of(int process) const;
  bool has_left(int process) const;
  /// Whether the neighbours have been told all that this rank knows: it may look no further after them.
  bool has_told() const;
  /// Batches begun, as far as this rank knows: of one process, of all.
  std::uint64_t of(int process) const;
  std::uint64_t total() const;
  void state(Archive& archive);
  /// As if every rank had begun so many, and spares none. So is a state: of the vertices' first processes.
  void begin_at(std::uint64_t batches);
  /// Whether any neighbour has told anything.
  bool has_heard() const { return has_heard_.load(std::memory_order_acquire); }

  // --- communication thread ---
  /// True if anything moved.
  bool progress();
  /// A process is dead: what it has begun still counts, and nothing is told to it any more.
  void drop(int process);
  /// While the computing thread waits: a spare works at this vertex from now on, and has nobody to tell yet.
  void stand_at(int vertex);
  /// While the computing thread waits: at the other end of `edge` there is this process from now on.
  void attach(std::size_t edge, int process);

 private:
  static constexpr std::size_t words_a_process = 2;
  struct Neighbour {
    int vertex, process;
    std::size_t there;                   // where this rank's words lie in its memory
    std::size_t here;                    // and its words in this rank's
    std::vector<std::uint64_t> words{};  // on their way
    std::uint64_t told = 0;              // the value of `due_` that they are of
    std::uint64_t heard = 0;             // ... and of `heard_`
    std::chrono::nanoseconds when{};
    bool under_way = false;
    bool lost = false;
    bool anew = false;  // nothing has been told yet
  };
  Neighbour neighbour_at(int vertex, int process) const;
  std::size_t words_of(int process, std::size_t slot) const;
  std::size_t processes() const { return counts_.size() / words_a_process; }
  std::uint64_t stop_word(int process) const;
  void note_told();
  void learn(std::size_t edge);
  bool tell(std::size_t edge);

  RemoteMemory& memory_;
  Ledger& ledger_;
  const Seats seats_;
  const std::size_t own_, ring_bytes_;
  int vertex_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // batches of all processes; then twice their stops, + 1 at the end
  std::atomic<std::uint64_t> due_{0};
  std::atomic<std::uint64_t> told_due_{0}, told_heard_{0};  // what all neighbours have been told
  std::atomic<bool> hurries_{false};                        // others wait for what this rank knows
  std::vector<Neighbour> neighbours_;
  std::vector<Neighbour> former_;  // what MPI may still read of what they were told stays
  std::size_t looked_at_ = 0;
  std::atomic<std::uint64_t> heard_{0};  // how often something new was
  std::atomic<bool> has_heard_{false};
};

}  // namespace hearsay

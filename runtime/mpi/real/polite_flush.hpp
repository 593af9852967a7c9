#pragma once
// Completing one-sided operations without standing still inside MPI. Included in runtime/mpi/real/ only.
//
// MPI_Win_flush returns when the target has everything, and until then nobody else is served. That is too long
//   - between hosts, for what takes long to arrive: one slow neighbour would hold up the packets to all others;
//   - between hosts, for everything where nobody waits for it: a flush polls until the target's thread has had a core,
//     and those who poll keep it from one;
//   - under MPICH, whose flush polls without ever giving the core away, and where puts are carried out by the target's
//     library (Debian's MPICH: everywhere, also on one node) polls until the target's thread has had a core. With more
//     ranks than cores most of every core goes into that.
// So a long put is one that says when it has left, a small get after it is answered after it, and both may be asked
// for without waiting; once the answer is there, the flush, which alone says what is complete, has nothing left to wait
// for. The ledger counts these gets no more than what MPI sends for a flush. Cost: a round trip more before a long
// packet's head may go.
//
// The flush itself is a round trip, in which osc/pt2pt polls; and where the target may die at any instant, no flush is
// safe, for it waits for ever for one that has died since it answered. In both cases the answer does. That is more than
// MPI promises and what osc/pt2pt does: it carries out what comes from one rank in the order in which it was sent.
// Should an answer overtake a put all the same, checksums find out: the mailbox looks again.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace hearsay::mpi {

/// Completion of what one rank has started on a window. Not copyable: MPI writes into it.
class PoliteFlush {
 public:
  /// Every rank's window has `line` bytes at its beginning that nobody ever writes.
  static constexpr std::size_t line = 64;

  enum class Behind { flush, answer };  ///< what says that a put is complete
  PoliteFlush(MPI_Win window, Behind complete) : window_(window), complete_(complete) {}
  PoliteFlush(const PoliteFlush&) = delete;
  PoliteFlush& operator=(const PoliteFlush&) = delete;

  /// To be called for every operation towards `target`, once it is started. A put may come with its request.
  void started(int target, MPI_Request put = MPI_REQUEST_NULL);
  /// A copy of `word` that stays until what follows has been flushed.
  const std::uint64_t& keep(std::uint64_t word, int target) { return targets_[target].words.emplace_back(word); }
  /// Whether something that was started towards `target` is not known to be complete.
  bool is_open(int target) const;
  /// Whether all that was started towards `target` is complete there. Never waits for the target.
  bool flush(int target);
  /// Waits for the answers that are still to come. Before the window's epoch ends.
  void finish() noexcept;

 private:
  struct Target {
    std::uint64_t started = 0;  // operations
    std::uint64_t asked = 0;    // how many of them the question under way lies behind
    std::uint64_t flushed = 0;
    std::uint64_t answer = 0;
    MPI_Request question = MPI_REQUEST_NULL;
    std::deque<MPI_Request> puts;  // that have not all left yet
    std::deque<std::uint64_t> words;
  };
  static bool all_left(Target& state);
  void ask(int target, Target& state);

  MPI_Win window_;
  Behind complete_;
  std::map<int, Target> targets_;
};

}  // namespace hearsay::mpi

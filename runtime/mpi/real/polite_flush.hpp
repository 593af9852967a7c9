#pragma once
// Completing one-sided operations without standing still inside MPI. Included in runtime/mpi/real/ only.
//
// MPICH's MPI_Win_flush polls without ever giving the core away, and where its puts are carried out by the target's
// library (Debian's MPICH: everywhere, also on one node) it polls until the target's thread has had a core. With more
// ranks than cores most of every core goes into that. A small get behind the operations is answered after them, and may
// be asked for without waiting; once the answer is there, the flush, which alone says what is complete, has nothing
// left to wait for. The ledger counts these gets no more than what MPI sends for a flush.
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

  explicit PoliteFlush(MPI_Win window) : window_(window) {}
  PoliteFlush(const PoliteFlush&) = delete;
  PoliteFlush& operator=(const PoliteFlush&) = delete;

  /// To be called for every operation towards `target`, once it is started.
  void started(int target) { ++targets_[target].started; }
  /// A copy of `word` that stays until what follows has been flushed.
  const std::uint64_t& keep(std::uint64_t word, int target) { return targets_[target].words.emplace_back(word); }
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
    std::deque<std::uint64_t> words;
  };
  void ask(int target, Target& state);

  MPI_Win window_;
  std::map<int, Target> targets_;
};

}  // namespace hearsay::mpi

#pragma once
// Which processes of a job are alive: heartbeats in their memories, without a collective and without a process that the
// others depend on. A failure detector with time-outs, in the sense of Chandra and Toueg (1996).
//   every beat:            beats ← beats + 1; this process's row (beats, whom it holds for dead) → its row in the
//                          memory of every process that it holds for alive
//   who looks at the rows: a process whose beats have not risen for `timeout` is dead, and so is whom a living process
//                          holds for dead
// Death is final: whoever is held for dead by a living process and yet alive (it was stopped, or starved) finds out by
// itself and throws TakenForDead. What it still writes goes to rows that nobody reads any more.
// A process that has itself not looked for a while believes nobody's silence from before: it may have been the one that
// was stopped. If it was stopped for longer than `timeout` and then hears of nobody, the others have gone on or ended
// without it, and it does not go on alone beside them: it throws TakenForDead, too. What comes in the first quarter of
// `timeout` after it goes on may have been sent before it was stopped (sockets hold it), and says nothing.
// Only processes that have been heard of once can be missed, so slow starts kill nobody. One that the transport itself
// knows to be gone, and that has not said that it leaves, is dead at once.
// Where there are spares (topology/seats.hpp), whose number is P or more, a row also says which vertex its sender has:
//   a spare takes a vertex          once, and says so; spares do so in their order, so that nobody has to agree
//   it takes part                   from when it has a model: then evaluation and reports count on it
//   who has taken a vertex last     works there: the spare of the highest number, else the one that began there
// A vertex may be vacant from the start: then it is as if its process were dead, though nobody has died. A spare may
// come later (train.joins): until the transport knows it, it is not there for anybody.
// A word says whether it is whole (whole_word.hpp).
// Cost: 8 (1 + ⌈P / 32⌉) bytes (8 more with spares) to every other process, `beats_in_timeout` times in `timeout`; P
// times as much memory.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay {

/// Other processes go on without this one: it must leave, and alone.
class TakenForDead : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

class FailureDetector {
 public:
  static constexpr int beats_in_timeout = 20;

  struct Death {
    int process;
    double at_s;  ///< on the ledger's clock, since they started together: when this process first held it for dead
    bool was_there = true;  ///< false: its vertex was vacant from the start
  };

  /// A spare that takes part at the vertex of a dead process.
  struct Join {
    int process, vertex;
    double at_s;  ///< as Death::at_s: when this process first knew
  };

  /// Bytes in the memory of every process. `processes`: the spares, which are the last of them, included.
  static std::size_t bytes(int processes, int spares = 0) {
    return static_cast<std::size_t>(processes) * row_words(processes, spares) * sizeof(std::uint64_t);
  }
  /// `offsets`: where the rows begin in the memory of each process. `slots`: which edge of the ledger each of them is,
  /// or −1. `vacant`: so many vertices, the last, have had nobody yet.
  FailureDetector(RemoteMemory& memory, int process, std::vector<std::size_t> offsets, std::vector<int> slots,
                  std::chrono::nanoseconds timeout, Ledger& ledger, int spares = 0, int vacant = 0);

  // --- any thread ---
  bool alive(int process) const { return !dead_[static_cast<std::size_t>(process)].load(std::memory_order_acquire); }
  /// How many are dead: rises.
  int dead() const { return count_.load(std::memory_order_acquire); }
  /// In the order in which this process has learnt of them.
  std::vector<Death> deaths() const;
  /// Those who have not come yet are left out.
  std::vector<int> living() const;
  /// As far as the transport knows.
  bool is_here(int process) const { return memory_.is_here(process); }
  /// A process that the job does not need any more says so before it leaves, and is missed by nobody.
  void leave() { leaving_.store(true, std::memory_order_release); }
  bool has_left(int process) const { return left_[static_cast<std::size_t>(process)].load(std::memory_order_acquire); }
  /// How often somebody has died, taken a vertex or begun to take part. Whoever asks for it before those has missed
  /// nothing as long as it stays.
  int changes() const { return changes_.load(std::memory_order_acquire); }
  /// Where a process works, or has worked; nothing for a spare that nobody has needed.
  std::optional<int> vertex_of(int process) const;
  /// The process that works there, or was the last to: it may be dead.
  int holder(int vertex) const;
  /// Alive, at a vertex and with a model.
  bool takes_part(int process) const;
  std::vector<int> participants() const;
  /// In the order in which this process has learnt of them.
  std::vector<Join> joins() const;
  /// The lowest vertex whose holder is dead and which has a neighbour that takes part, if it is for this spare to take:
  /// all spares before it are in use, have left or are dead.
  std::optional<int> vertex_to_take(const std::function<std::vector<int>(int vertex)>& neighbours) const;
  /// A spare calls this once.
  void take(int vertex);
  void take_part();

  // --- communication thread ---
  /// True if anything moved. Throws TakenForDead.
  bool progress();

 private:
  struct Peer {
    std::uint64_t beats = 0;  // 0: not heard of yet
    std::chrono::nanoseconds heard{};
    bool under_way = false;
    bool due = false;                       // there is a newer row than the one under way
    std::vector<std::uint64_t> row{};       // under way: must not change before it has arrived
    std::vector<std::uint64_t> farewell{};  // the last row, to one that is held for dead
    bool lives = false;                     // one that is held for dead: it must hear of that
  };
  /// When this process stood still.
  struct Stop {
    std::chrono::nanoseconds length, end;
  };
  static constexpr std::uint32_t left_bit = std::uint32_t{1} << 31;
  /// A spare's word about itself: its vertex + 1, or 0, and whether it takes part.
  static constexpr std::uint32_t part_bit = std::uint32_t{1} << 31;
  static std::size_t bit_words(int processes) { return (static_cast<std::size_t>(processes) + 31) / 32; }
  static std::size_t row_words(int processes, int spares) { return 1 + bit_words(processes) + (spares > 0 ? 1 : 0); }

  int processes() const { return static_cast<int>(peers_.size()); }
  bool is_spare(int process) const { return process >= vertices_; }
  std::uint32_t role(int process) const {
    return roles_[static_cast<std::size_t>(process)].load(std::memory_order_acquire);
  }
  void note_role(int process, std::uint32_t role);
  std::uint64_t word(int row, std::size_t at) const;
  bool bury_gone(std::chrono::nanoseconds now);
  void look(std::chrono::nanoseconds now);
  void listen(int process, std::chrono::nanoseconds now);
  void learn_role(int spare, std::chrono::nanoseconds now);
  void believe(int process, std::chrono::nanoseconds now);
  void bury(int process, std::chrono::nanoseconds now);
  void note_death(const Death& death);
  void notice_life(int process, std::chrono::nanoseconds now);
  bool finish_beat();
  void beat(std::chrono::nanoseconds now);
  void tell(int process);
  void tell_dead();
  void put_row(int to, const std::vector<std::uint64_t>& row);

  RemoteMemory& memory_;
  Ledger& ledger_;
  const int process_;
  const std::vector<std::size_t> offsets_;
  const std::vector<int> slots_;
  const std::chrono::nanoseconds timeout_;
  const int vertices_;
  std::vector<Peer> peers_;
  std::vector<std::uint64_t> row_;  // the newest
  std::vector<std::atomic<bool>> dead_, left_;
  std::vector<std::atomic<std::uint32_t>> roles_;  // of spares; this process's own is set by the computing thread
  std::atomic<int> count_{0}, changes_{0};
  std::atomic<bool> leaving_{false};
  bool said_that_it_leaves_ = false;
  mutable std::mutex mutex_;
  std::vector<Death> deaths_;
  std::vector<Join> joins_;
  std::uint32_t beats_ = 0;
  std::size_t gone_ = 0;  // of those that the transport knows, how many were looked at
  std::chrono::nanoseconds next_beat_{}, looked_{};
  std::optional<Stop> stop_{};   // the last that was longer than the time-out, if nobody was heard of since
  int told_ = 0;                 // deaths in the last row
  std::uint32_t told_role_ = 0;  // and what it said of this process
};

}  // namespace hearsay

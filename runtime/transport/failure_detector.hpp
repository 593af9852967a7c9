#pragma once
// Which ranks of a job are alive: heartbeats in the ranks' memories, without a collective and without a rank that the
// others depend on. A failure detector with time-outs, in the sense of Chandra and Toueg (1996).
//   every beat:            beats ← beats + 1; this rank's row (beats, whom it holds for dead) → its place in the memory
//                          of every rank that it holds for alive
//   who looks at the rows: a rank whose beats have not risen for `timeout` is dead, and so is whom a living rank holds
//                          for dead
// Death is final: whoever is held for dead by a living rank and yet alive (it was stopped, or starved) finds out by
// itself and throws TakenForDead. What it still writes goes to places that nobody reads any more.
// A rank that has itself not looked for a while believes nobody's silence from before: it may have been the one that
// was stopped.
// Only ranks that have been heard of once can be missed, so slow starts kill nobody.
// A word says whether it is whole (whole_word.hpp).
// Cost: 8 (1 + ⌈P / 32⌉) bytes to every other rank, `beats_in_timeout` times in `timeout`; P times as much memory.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay {

/// Other ranks go on without this one: it must leave, and alone.
class TakenForDead : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

class FailureDetector {
 public:
  static constexpr int beats_in_timeout = 20;

  struct Death {
    int rank;
    double at_s;  ///< on the ledger's clock, since the ranks started together: when this rank first held it for dead
  };

  /// Bytes in the memory of every rank.
  static std::size_t bytes(int ranks) {
    return static_cast<std::size_t>(ranks) * row_words(ranks) * sizeof(std::uint64_t);
  }
  /// `places`: where the rows begin in the memory of each rank. `slots`: which edge of the ledger each rank is, or −1.
  FailureDetector(RemoteMemory& memory, int rank, std::vector<std::size_t> places, std::vector<int> slots,
                  std::chrono::nanoseconds timeout, Ledger& ledger);

  // --- any thread ---
  bool alive(int rank) const { return !dead_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire); }
  /// How many are dead: rises.
  int dead() const { return count_.load(std::memory_order_acquire); }
  /// In the order in which this rank has learnt of them.
  std::vector<Death> deaths() const;
  std::vector<int> living() const;
  /// A rank that the job does not need any more says so before it leaves, and is missed by nobody.
  void leave() { leaving_.store(true, std::memory_order_release); }
  bool has_left(int rank) const { return left_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire); }

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
  };
  static constexpr std::uint32_t left_bit = std::uint32_t{1} << 31;
  static std::size_t row_words(int ranks) { return 1 + (static_cast<std::size_t>(ranks) + 31) / 32; }

  int ranks() const { return static_cast<int>(peers_.size()); }
  std::uint64_t word(int row, std::size_t at) const;
  void look(std::chrono::nanoseconds now);
  void listen(int rank, std::chrono::nanoseconds now);
  void believe(int rank);
  void bury(int rank);
  bool finish_beat();
  void beat(std::chrono::nanoseconds now);
  void tell(int rank);
  void tell_dead();
  void put_row(int to, const std::vector<std::uint64_t>& row);

  RemoteMemory& memory_;
  Ledger& ledger_;
  const int rank_;
  const std::vector<std::size_t> places_;
  const std::vector<int> slots_;
  const std::chrono::nanoseconds timeout_;
  std::vector<Peer> peers_;
  std::vector<std::uint64_t> row_;  // the newest
  std::vector<std::atomic<bool>> dead_, left_;
  std::atomic<int> count_{0};
  std::atomic<bool> leaving_{false};
  bool said_that_it_leaves_ = false;
  mutable std::mutex mutex_;
  std::vector<Death> deaths_;
  std::uint32_t beats_ = 0;
  std::chrono::nanoseconds next_beat_{}, looked_{};
  int told_ = 0;  // deaths in the last row
};

}  // namespace hearsay

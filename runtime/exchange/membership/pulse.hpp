#pragma once
// Whether the other ranks still move, where a death is the end of the job and one that only stands still (it was
// stopped, it hangs) would keep all others waiting for ever.
//   every look:                        the word in this rank's own memory rises; nothing is sent
//   who has itself not moved on for a
//   twentieth of `timeout`:            reads the others' words, now and then
//   a word that has not risen, or has
//   not come, for `timeout`:           that rank stands still: throws CommunicationError, which ends the job
// The communication thread beats, so a rank that computes for long is none that stands still. A rank that has itself
// been away believes nobody's silence from before.
// Cost: 8 bytes read of every rank, `looks_in_timeout` times in `timeout`, and only while nothing moves on.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay {

class Pulse {
 public:
  static constexpr int looks_in_timeout = 40;
  /// Bytes in the memory of every rank: a cache line.
  static constexpr std::size_t bytes = 64;

  /// `offsets`: where they begin in the memory of each rank.
  Pulse(RemoteMemory& memory, int rank, std::vector<std::size_t> offsets, std::chrono::nanoseconds timeout,
        Clock clock);

  // --- any thread ---
  /// This rank has moved on by itself.
  void moved() { moves_.fetch_add(1, std::memory_order_release); }
  /// Others may stand still from now on: they have no more to do.
  void rest() { resting_.store(true, std::memory_order_release); }

  // --- communication thread ---
  /// Throws CommunicationError.
  void progress();

 private:
  struct Peer {
    std::uint64_t beats = 0;
    std::chrono::nanoseconds heard{};
  };
  void beat();
  void look(std::chrono::nanoseconds now);
  void require_all_moving(std::chrono::nanoseconds now) const;

  RemoteMemory& memory_;
  const int rank_;
  const std::vector<std::size_t> offsets_;
  const std::chrono::nanoseconds timeout_;
  const Clock clock_;
  std::vector<Peer> peers_;
  std::atomic<std::uint64_t> moves_{1};
  std::atomic<bool> resting_{false};
  std::uint64_t calls_ = 0, beats_ = 0, seen_moves_ = 0;
  std::chrono::nanoseconds here_{}, moved_{}, looked_{};
};

}  // namespace hearsay

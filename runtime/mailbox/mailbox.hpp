#pragma once
// The in-boxes of one rank: for every in-edge a bounded ring that the neighbour fills with one-sided puts.
//
// Law: every posted packet is taken exactly once, whole and in order; memory is bounded; a full ring refuses
// (`fits` is false) and never overwrites.
//
// Protocol on the directed edge i → j, all positions being byte counts that only rise, ring index = position mod
// capacity:
//   1. i has room if capacity − (reserved − tail_i) ≥ packet (+ the rest of the ring, if the packet must start anew at
//   0);
//   2. i puts the packet, flushes (it is complete in j's memory), then advances `head` in j's memory by an atomic
//   store;
//   3. j reads `head`, checks the packets before it, hands them out in place; when they are consumed it stores `tail`
//      into i's memory.
// A small packet need not wait for its head: where the bytes behind the last packet are one of a later iteration and
// their checksum agrees, it has come whole, whatever MPI says. What a put has written so far is either that or not yet a
// packet; bytes of an earlier round of the ring are of an earlier iteration. This saves a round trip on the network; a
// packet that is damaged is still found out, when its head comes.
// Memory model: the flush in 2 orders the packet before `head` at the target (MPI-4, 12.7: completion at the target
// before the next operation starts). j loads `head` after MPI_Win_sync and loads packets after `head`. That is enough
// in the unified model, which Window demands; in a separate one j would need a sync between head and packet as well.
// There, too, loads beside a put give some value of each byte, old or new, which the checksum tells apart.
// Both words are written by one rank only, atomically, each on a cache line of its own.
//
// Threads: `fits`, `post`, `front`, `pop` belong to the computing thread; `progress` to the communication thread.
//
// Cost per packet: two puts (packet, head) and, per drained batch, one (tail); one copy, one checksum pass on either
// side. A small packet that is under way costs a copy and a checksum at each look.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/mailbox/packet.hpp"
#include "runtime/mailbox/remote_memory.hpp"
#include "topology/topology.hpp"

namespace hearsay {

class Ledger;

/// Where things lie in the memory of a rank with `degree` neighbours: a line a neighbour for `tail`, a line a neighbour
/// for `head`, then the rings. Equal capacity everywhere, so that every rank can compute every other's map.
struct MailboxMap {
  int degree;
  std::size_t capacity_bytes;  ///< of one ring, a multiple of 64

  static constexpr std::size_t line = 64;
  std::size_t tail(int slot) const { return line * static_cast<std::size_t>(slot); }
  std::size_t head(int slot) const { return line * static_cast<std::size_t>(degree + slot); }
  std::size_t ring(int slot) const {
    return 2 * line * static_cast<std::size_t>(degree) + capacity_bytes * static_cast<std::size_t>(slot);
  }
  std::size_t total_bytes() const { return ring(degree); }
  /// A ring for three packets of `packet_bytes`: two always fit, wherever the first one starts. Packets are never
  /// split.
  static std::size_t capacity_for(std::size_t packet_bytes);
};

class Mailbox {
 public:
  /// `memory` must hold `MailboxMap{degree, capacity}.total_bytes()` on every rank. `edge` below is always an index
  /// into `topology.neighbourhood(rank).neighbours`. A capacity of 0 is that of an exchange which posts nothing: there are
  /// no edges then.
  Mailbox(RemoteMemory& memory, const Topology& topology, int rank, std::size_t capacity_bytes, Ledger& ledger);

  // --- computing thread ---
  /// Whether a packet of `bytes` can be posted to neighbour `edge` now.
  bool fits(std::size_t edge, std::size_t bytes) const;
  /// Hands a packet over for sending. It must fit, and not be of an earlier iteration than the one before
  /// (std::logic_error).
  void post(std::size_t edge, SharedPacket packet);
  /// The oldest packet from neighbour `edge` that is not popped yet, where it lies; empty if there is none.
  std::optional<std::span<const std::byte>> front(std::size_t edge) const;
  /// Frees the front packet's place.
  void pop(std::size_t edge);

  // --- communication thread ---
  /// Packets up to this size are taken as soon as they are whole, larger ones when their head says so.
  static constexpr std::size_t early_bytes = 16384;
  /// Sends what is posted, looks for what has come, returns freed places. True if anything moved.
  /// Throws CommunicationError naming the edge for a packet whose checksum, sender or length is wrong.
  bool progress();
  /// Whether posted packets are still to be sent. Any thread.
  bool sending() const { return unsent_ > 0; }

 private:
  struct Outgoing {  // edge rank → neighbour
    int neighbour;
    MailboxMap remote;           // the neighbour's memory
    int remote_slot;             // where this rank stands in the neighbour's list
    std::uint64_t reserved = 0;  // computing thread: position behind the last posted packet
    /// Computing thread: of the last posted packet; bytes that say any iteration may be the first, damaged ones in tests too.
    Iteration last = std::numeric_limits<Iteration>::min();
    std::uint64_t published = 0;  // communication thread: the last head stored
    std::uint64_t head_word = 0;  // source of the store; stays until the flush
    std::atomic<std::uint64_t> tail{0};
    std::vector<SharedPacket> posted;     // guarded by mutex_
    std::vector<SharedPacket> in_flight;  // until their head is flushed
    std::chrono::nanoseconds put_from{};  // when the first of them was put
    bool head_stored = false;             // of those in flight
  };
  struct Arrived {
    std::uint64_t position;  // behind the packet
    std::span<const std::byte> bytes;
  };
  struct Incoming {  // edge neighbour → rank
    int neighbour;
    MailboxMap remote;
    int remote_slot;
    std::uint64_t seen = 0;      // communication thread: position up to which packets were handed out
    Iteration last = -1;         // communication thread: of the last of them
    std::uint64_t returned = 0;  // communication thread: the last tail stored
    std::uint64_t tail_word = 0;
    bool tail_in_flight = false;
    std::atomic<std::uint64_t> consumed{0};
    std::deque<Arrived> arrived;          // guarded by mutex_
    std::atomic<std::size_t> waiting{0};  // how many those are: to see without the mutex that there are none
  };

  std::uint64_t start_of(std::uint64_t position, std::size_t bytes) const;  ///< where a packet at `position` begins
  bool send_posted();
  void read_tails();
  bool start_packets(std::size_t edge);
  bool publish_packets(std::size_t edge);
  bool complete_stores();
  void finish_packets(std::size_t edge);
  void put_packet(std::size_t edge, Outgoing& out, const OutgoingPacket& packet);
  bool receive_new();
  std::vector<Arrived> check_arrived(std::size_t edge, std::uint64_t head) const;
  bool early_packet(std::size_t edge) const;
  Arrived hand_out(std::size_t edge) const;
  std::span<std::byte> next_place(std::size_t edge) const;
  bool return_places();
  std::uint64_t load_own(std::size_t offset) const;

  RemoteMemory& memory_;
  std::span<std::byte> own_;
  Ledger& ledger_;
  int rank_;
  MailboxMap map_;
  mutable std::mutex mutex_;
  std::atomic<std::size_t> unsent_{0};  // posted, head not flushed yet
  std::vector<std::unique_ptr<Outgoing>> out_;
  std::vector<std::unique_ptr<Incoming>> in_;
};

}  // namespace hearsay

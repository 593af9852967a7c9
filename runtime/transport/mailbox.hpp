#pragma once
// The in-boxes of one rank: for every in-edge a bounded ring that the neighbour fills with one-sided puts.
// Where a dead rank is replaced by another process (seats.hpp), its edges begin anew in rings of their own.
//
// Law: every posted packet is taken exactly once, whole and in order; memory is bounded; a full ring refuses
// (`fits` is false) and never overwrites.
//
// Protocol on the directed edge i → j, all positions being byte counts that only rise, ring index = position mod
// capacity:
//   1. i has room if capacity − (reserved − tail_i) ≥ packet (+ the rest of the ring, if the packet must start anew at
//   0);
//   2. i puts the packet, flushes (it is complete in j's memory), then stores `head` in j's memory;
//   3. j reads `head`, checks the packets before it, hands them out in place; when they are consumed it stores `tail`
//      into i's memory.
// A small packet need not wait for its head: where the bytes behind the last packet are one of a later iteration and
// their checksum agrees, it has come whole, whatever MPI says. What a put has written so far is either that or not yet
// a packet; bytes of an earlier round of the ring are of an earlier iteration. This saves a round trip on the network;
// a packet that is damaged is still found out, when its head comes. So nobody waits for the head of such a packet, nor
// for the tail that gives back less than a quarter of the ring: both may be put off for as many looks as RemoteMemory's
// `patience` says, and one then does for all packets until there.
// Memory model: what MPI promises in the unified model, which Window demands (MPI-4, 12.4 and 12.7), and nothing more.
// A flush completes what was started before it at the target, so in 2 no byte of `head` is written before the packet is
// there. A load beside a put, an accumulate or a store finds single bytes, each old or new, in any mixture; it finds
// the new ones in the end, if MPI_Win_sync is called now and then.
//   - `head` and `tail` are words that say whether they are whole (whole_word.hpp). A torn one is not believed: j
//     goes by the last whole one, which is too small at worst, and looks again. So neither an atomic read is needed,
//     which would be a message to oneself at every look, nor a processor that loads 64 bits at once.
//   - A packet is believed if its checksum agrees. In a separate model, or on a machine whose loads overtake each
//     other, the loads of a packet may be older than that of `head`: what then lies there is older bytes, or a whole
//     packet of an earlier round of the ring, which is of an earlier iteration. So j looks again, too, and calls a
//     packet corrupt that is still not there after `most_looks`. (Of several packets of one iteration an old one could
//     be taken for a new one; no exchange sends a ring of them.)
// Both words are written by one rank only, each on a cache line of its own.
//
// Threads: `fits`, `post`, `front`, `pop` belong to the computing thread; `progress` to the communication thread.
//
// Cost per packet: two puts (packet, head) and, per drained batch, one (tail), of small packets one head and one tail
// for many; one copy, one checksum pass on either side. A small packet that is under way costs a copy and a checksum at
// each look.
#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/transport/packet.hpp"
#include "runtime/transport/remote_memory.hpp"
#include "runtime/transport/ring_position.hpp"
#include "runtime/transport/whole_word.hpp"
#include "topology/seats.hpp"

namespace hearsay {

class Ledger;

/// Where things lie in the memory of a rank with `degree` slots (a neighbour each; seats.hpp): a line a slot for
/// `tail`, a line a slot for `head`, then the rings. Equal capacity everywhere, so that every rank can compute every
/// other's map. Without capacity there is nothing.
struct MailboxMap {
  int degree;
  std::size_t capacity_bytes;  ///< of one ring, a multiple of 64

  static constexpr std::size_t line = position_step;
  std::size_t tail(int slot) const { return line * static_cast<std::size_t>(slot); }
  std::size_t head(int slot) const { return line * static_cast<std::size_t>(degree + slot); }
  std::size_t ring(int slot) const {
    return 2 * line * static_cast<std::size_t>(degree) + capacity_bytes * static_cast<std::size_t>(slot);
  }
  std::size_t total_bytes() const { return capacity_bytes == 0 ? 0 : ring(degree); }
  /// A ring in which `packets` packets of `packet_bytes` always fit, wherever the first one starts: it has room for one
  /// more. Packets are never split. Throws ConfigError where the positions of such a ring could not be told apart:
  /// packets beyond 32 GiB, fewer where more of them are to fit.
  static std::size_t capacity_for(std::size_t packet_bytes, std::size_t packets = 2);
};

class Mailbox {
 public:
  /// Whether a tail that gives back little of the ring may be put off, or senders wait for every one of them.
  enum class Tails { may_wait, at_once };

  /// `memory` must hold `MailboxMap{slots, capacity}.total_bytes()` on every process. `edge` below is always an index
  /// into the neighbours of the vertex where this process works. A capacity of 0 is that of an exchange which posts
  /// nothing: there are no edges then; a spare has none, either, before it has a vertex.
  Mailbox(RemoteMemory& memory, const Seats& seats, int process, std::size_t capacity_bytes, Ledger& ledger,
          Tails tails = Tails::may_wait);

  // --- computing thread ---
  /// Whether a packet of `bytes` can be posted to neighbour `edge` now.
  bool fits(std::size_t edge, std::size_t bytes) const;
  /// Packets to neighbour `edge` that it has not popped yet, as far as this rank knows.
  std::size_t under_way(std::size_t edge) const;
  /// Hands a packet over for sending. It must fit, and not be of an earlier iteration than the one before
  /// (std::logic_error).
  void post(std::size_t edge, SharedPacket packet);
  /// The oldest packet from neighbour `edge` that is not popped yet, where it lies; empty if there is none.
  std::optional<std::span<const std::byte>> front(std::size_t edge) const;
  /// Frees the front packet's bytes.
  void pop(std::size_t edge);
  /// The neighbour is dead: what was posted to it counts as sent, nothing fits any more, and what it has sent, or still
  /// sends, is not looked at.
  void drop(std::size_t edge) { out_[edge]->lost.store(true, std::memory_order_release); }

  // --- communication thread, while the computing thread waits ---
  /// A spare works at this vertex from now on. Its edges are as if their neighbours were dead.
  void stand_at(int vertex);
  /// At the other end of `edge` there is this process from now on: nothing has crossed between the two. Whoever was
  /// there before is as if dropped.
  void attach(std::size_t edge, int process);

  // --- communication thread ---
  /// Packets up to this size are taken as soon as they are whole, larger ones when their head says so.
  static constexpr std::size_t early_bytes = 16384;
  /// Packets to a neighbour that may be posted and not yet put.
  static constexpr std::size_t most_posted = 256;
  /// How often what should be there is looked at again before it is called corrupt.
  static constexpr int most_looks = 1000;
  /// Sends what is posted, looks for what has come, returns freed bytes. True if anything moved, or must be looked at
  /// again. Throws CommunicationError naming the edge for a packet whose checksum, sender or length is wrong, and stays
  /// wrong.
  bool progress();
  /// Whether posted packets are still to be sent. Any thread.
  bool sending() const { return sent_.load(std::memory_order_acquire) != posted_.load(std::memory_order_acquire); }

 private:
  /// The other end in either direction: the neighbour, the process that works there, its memory, which slot of it is
  /// this process's, and which slot of this one's memory is the other's.
  struct End {
    int neighbour;
    int process;
    MailboxMap remote;
    int slot;
    int here;
  };
  struct Outgoing {  // edge rank → neighbour
    explicit Outgoing(const End& end) : to(end), reserved(end.remote.capacity_bytes), put(end.remote.capacity_bytes) {}
    End to;
    // The computing thread's:
    RingPosition reserved;             // behind the last posted packet
    std::deque<std::uint64_t> ends{};  // of posted packets that were not popped when last looked at
    /// That packet's iteration; bytes that say any iteration may be the first, damaged ones in tests too.
    Iteration last = std::numeric_limits<Iteration>::min();
    // From one thread to the other:
    /// The form of fixed capacity leaks what is left in it (Boost 1.74).
    boost::lockfree::spsc_queue<SharedPacket> posted{most_posted};
    std::atomic<std::uint64_t> tail{0};
    std::atomic<bool> lost{false};  // the neighbour is dead; set on either thread
    // The communication thread's:
    std::vector<SharedPacket> in_flight;  // until they are flushed
    RingPosition put;                     // behind the last packet put
    Iteration last_put = -1;              // of that packet
    PacketHeader marker{};                // source of the put that leaves the rest of the ring unused
    int looks = 0;                        // at a tail that is torn
    std::chrono::nanoseconds put_from{};  // when the first of those in flight was put
    std::size_t unpublished = 0;          // packets that are flushed, their head not
    bool urgent = false;                  // one of those put cannot be taken before its head says so
    std::size_t waiting_for_head = 0;     // of the packets that the head in flight lets the neighbour take
    std::uint64_t head_word = 0;          // source of the head's store; stays until the flush
    int head_put_off = 0;                 // how often, since it was due
    bool head_in_flight = false;
    bool forgotten = false;  // those in flight when the neighbour died count as sent
  };
  struct Incoming {  // edge neighbour → rank
    explicit Incoming(const End& end)
        : from(end), taken(end.remote.capacity_bytes), checked(end.remote.capacity_bytes) {}
    End from;
    // The computing thread's:
    RingPosition taken;  // behind the last packet popped
    // From one thread to the other:
    std::atomic<std::uint64_t> consumed{0};  // how far `taken` is
    std::atomic<std::uint64_t> arrived{0};   // how far `checked` is
    // The communication thread's:
    std::uint64_t head = 0;       // the last one that was whole
    int looks = 0;                // at a head that is torn, or a packet before it that is not there
    RingPosition checked;         // behind the last packet that may be taken
    Iteration last_checked = -1;  // of that packet
    std::uint64_t returned = 0;   // the last tail stored
    std::uint64_t tail_word = 0;  // its source
    int tail_put_off = 0;         // how often, since it was due
    bool tail_in_flight = false;
  };

  End end_at(int neighbour, int process) const;
  void make_edges();
  bool is_lost(std::size_t edge) const { return out_[edge]->lost.load(std::memory_order_acquire); }
  bool has_room(std::size_t edge, std::size_t bytes) const;
  void forget_posted(std::size_t edge);
  bool send_posted();
  bool read_tails();
  bool start_packets(std::size_t edge);
  bool complete_packets(std::size_t edge);
  bool publish_packets();
  void store_head(std::size_t edge);
  bool complete_stores();
  void put_packet(std::size_t edge, Outgoing& out, const OutgoingPacket& packet);
  bool receive_new();
  bool check_arrived(std::size_t edge);
  bool take_published(std::size_t edge);
  void accept(std::size_t edge, const PacketHeader& header);
  std::optional<PacketHeader> early_packet(std::size_t edge) const;
  std::span<std::byte> bytes_at(std::size_t edge, const RingPosition& position) const;
  RingPosition oldest(std::size_t edge) const;
  bool return_bytes();
  std::uint64_t load_own(std::size_t offset) const;

  RemoteMemory& memory_;
  std::span<std::byte> own_;
  int patience_;
  Tails tails_;
  Ledger& ledger_;
  const Seats seats_;
  const int process_;
  int rank_;  // the vertex
  MailboxMap map_;
  // Written by one thread each, so neither needs an atomic addition.
  std::atomic<std::uint64_t> posted_{0};  // computing thread: packets
  std::atomic<std::uint64_t> sent_{0};    // communication thread: packets whose head is flushed
  std::vector<std::unique_ptr<Outgoing>> out_;
  std::vector<std::unique_ptr<Incoming>> in_;
  /// What MPI may still read of processes that are dead stays.
  std::vector<std::unique_ptr<Outgoing>> former_out_;
  std::vector<std::unique_ptr<Incoming>> former_in_;
};

}  // namespace hearsay

#pragma once
// A rank's side of its edges: fired segments go out as packets, packets come in as copies x̂_j.
//
// Tells mixing what has crossed each edge since it last mixed: by events of either end, whole or at some positions.
//
// Keeps what the neighbours hold of this rank (x̂_i) where a sparsifier or a mixing rule needs it, and what must still
// be sent where a ring was full: a deferred event stays pending on that edge and goes out, with the values of the time,
// as soon as there is room; until then the edge's x̂_i stays what the receiver really has.
//
// An edge whose other end is a new process begins anew: the first packet of either end is all of its x, as it is. With
// that both know the same pair of copies; what is fired meanwhile is pending. These two packets are no events and move
// nothing, and along an alternating edge the lower rank sends first, as at the start.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/link/gains.hpp"
#include "runtime/exchange/neighbour/link/news.hpp"
#include "runtime/exchange/neighbour/link/sizes.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "runtime/exchange/segments.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

class NeighbourLink final : public EdgeListener {
 public:
  /// x̂_j and x̂_i start as the common initial model in `context.replica`.
  NeighbourLink(const ExchangeContext& context, LinkOptions options, Sparsifier sparsifier);

  /// Encodes and posts the segments with fired[s] ≠ 0 as they are in the replica now. Lockstep sends a packet to every
  /// neighbour (of a graph that changes: to the peer of iteration k) at every iteration, asynchronous only where there
  /// is news. Waits for nobody in asynchronous mode. In lockstep a ring has room for this packet by construction; with
  /// a delay of 1 it may have to wait for room, but never in a circle: two packets always fit, so whoever is waited for
  /// is an iteration behind. (With 2 it could.) Along an alternating edge a packet goes, empty or not, whenever the
  /// other end has sent last.
  void send(Iteration k, std::span<const std::uint8_t> fired);
  /// Every segment is an event, and counts as one.
  void send(Iteration k);
  /// Asynchronous: what was fired and could not go, as it is in the replica now, on edges where it may go now. `owes`:
  /// whether there is such an edge.
  void send_pending(Iteration k);
  bool owes() const;
  /// Brings the copies x̂_j up to date: lockstep with every neighbour's packet of iteration k − delay, asynchronous
  /// with all that has arrived. Throws CommunicationError naming the edge for a packet that cannot be what was agreed.
  void receive(Iteration k);
  /// Whether `receive` would find a packet on an edge that mixes.
  bool has_come() const;

  /// Asynchronous: brings the copies up to date with all that has arrived, and mixes nothing.
  void take_arrived();
  /// Copies, what is pending, what has crossed. With a delay, the last packet: loading sends it again.
  void state(Archive& archive);

  /// What later packets say of this rank to the other end of an edge: per segment how far a gradient moves it, floats
  /// whose lower half is 0. Both ends know the larger one (MixEdge::gains) when a segment mixes. Does nothing without
  /// any. Lockstep tells all edges the same.
  void say_gains(std::size_t edge, std::span<const float> gains);

  /// Δ of what is sent from now on, where changes are counted in steps: sent_step's. 0: not known, and nothing goes.
  /// At the start what the configuration says.
  void count_in(float step) { step_ = step; }

  /// The caller has mixed these segments (those with segments[s] ≠ 0): nothing of them is news any more.
  void mixed(std::span<const std::uint8_t> segments);
  /// Where copies follow: a move of this rank's is also one of what the other end holds of it, and the opposite one
  /// that of the other end. Both ends know.
  void follow(const Move& move);
  /// Where edges alternate, and in lockstep where they have copies of their own.
  bool copies_follow() const { return options_.edge_copies || options_.alternating; }
  /// Along alternating edges: the ages of the copies that this rank's own events, sent by iteration k, mix with.
  void note_ages_of_own_events(Iteration k);

  /// Bytes of all packets of events that this rank has posted, to all neighbours.
  std::uint64_t posted_bytes() const { return posted_bytes_; }

  /// The iteration whose values mix in lockstep at iteration k.
  Iteration iteration_of_copies(Iteration k) const { return k - options_.delay; }
  Settling settling() const {
    return {.iterations = 1.0 + static_cast<double>(options_.delay),
            .sends = sparsifier_.codec ? sparsifier_.codec->sends_to_settle() : 1.0,
            .alternating = options_.alternating};
  }
  std::span<const std::uint8_t> every_segment() const { return every_segment_; }
  /// What the neighbours hold of this rank: one block, or one an edge (LinkOptions::own_copy_by_edge); none unless they
  /// are kept. Edges have x itself then.
  std::span<const FloatBlock> own_copies() const { return own_copies_; }
  /// Views of the copies as they are now.
  std::span<const MixEdge> edges() const { return edges_; }
  /// Only those that iteration k hears of; all of them unless the graph changes.
  std::span<const MixEdge> edges(Iteration k) const;

 private:
  struct Edge {
    FloatBlock theirs;                  // x̂_j
    std::vector<std::uint8_t> pending;  // events that are still owed to j
    EdgeNews news;
    EdgeNews next;  // with a delay: this rank's events, whose values mix an iteration later
    EdgeGains gains{};
    Iteration newest_packet = -1;
    Stamp newest_sent{};
    bool sends_next = false;                       // of an alternating edge: this end does
    bool sent_whole = false, heard_whole = false;  // of an edge that begins
  };

  /// Edges first … end − 1.
  struct EdgeRange {
    std::size_t first, end;
  };

  void edge_lost(std::size_t edge) override;
  void edge_begins(std::size_t edge) override;
  void edge_mixes(std::size_t edge) override;
  void agree_if_whole(std::size_t edge);

  bool lockstep() const { return options_.schedule == Schedule::lockstep; }
  FloatBlock& own_copy(std::size_t edge) { return own_copies_[options_.own_copy_by_edge() ? edge : 0]; }
  bool delays_own_copy() const { return options_.delay > 0 && options_.keep_own_copies && !own_copies_.empty(); }
  EdgeRange out_edges(Iteration k) const;
  EdgeRange in_edges(Iteration k) const;
  void note_age(std::size_t edge, Iteration k);
  void wait_for(const std::function<bool()>& ready);
  void last_packet_state(Archive& archive);
  // Counts selected values: the same on both ends of an edge.
  void decode_selected(SegmentId s, std::size_t count, std::span<const std::byte> body);
  void move_copy(std::span<float> copy);
  void note_positions(EdgeNews& news, SegmentId s, std::size_t count);

  // send.cpp
  void send_lockstep(Iteration k, std::span<const std::uint8_t> fired);
  void post_lockstep(std::size_t edge, const SharedPacket& packet, std::span<const std::uint8_t> fired);
  void send_asynchronous(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired);
  void send_whole(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired);
  bool may_send(std::size_t edge) const;
  bool owes(std::size_t edge) const;
  std::size_t bound(std::span<const std::uint8_t> segments) const;
  void make_room(OutgoingPacket& packet, std::size_t bytes);
  SharedPacket encode(Iteration k, std::span<const std::uint8_t> segments, FloatBlock* own_copy,
                      const EdgeGains& gains);
  void append_whole(OutgoingPacket& packet, SegmentId s, FloatBlock* own_copy, std::uint64_t gain);
  void append_selected(OutgoingPacket& packet, SegmentId s, FloatBlock& own_copy, std::uint64_t gain);
  void append_quantised(OutgoingPacket& packet, SegmentId s, std::uint64_t gain);
  void post(std::size_t edge, const SharedPacket& packet, std::span<const std::uint8_t> segments);
  void note_sent(std::size_t edge, std::span<const std::uint8_t> segments);

  // events.cpp
  bool append_events(OutgoingPacket& packet, std::span<const SegmentId> segments, FloatBlock& own_copy,
                     const EdgeGains& gains);
  void apply_events(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body);
  void note_events(EdgeNews& news, SegmentId s, std::size_t first, std::size_t end);
  template <class Take>
  void for_each_speaking(const Take& take);

  // receive.cpp
  bool may_take(std::size_t edge) const;
  void hear_whole(std::size_t edge, std::span<const std::byte> packet);
  std::uint32_t apply_front(std::size_t edge);
  std::uint32_t apply(std::size_t edge, std::span<const std::byte> packet);
  void apply_segment(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body);
  void hear_payload(const SegmentHeader& header, std::span<const std::byte> body, std::span<float> copy);

  ExchangeContext context_;
  Device& device_;
  const Layout& layout_;
  LinkOptions options_;
  Sparsifier sparsifier_;
  std::unique_ptr<ChangeSelection> changes_;          // null: all segments travel whole, or …
  std::unique_ptr<ChangeQuantiser> quantiser_;        // … the device writes what of them travels
  std::vector<std::vector<std::uint32_t>> row_ends_;  // per segment; empty unless the quantiser goes by rows
  PacketPool pool_;
  std::vector<Edge> links_;
  std::vector<FloatBlock> own_copies_;  // none, one or one an edge
  FloatBlock own_before_;               // with a delay: the own copy of the iteration before
  Iteration first_ = -1;  // lockstep: the iteration of the first packet of this rank and its neighbours; -1: none yet
  SharedPacket last_packet_;  // with a delay: not used by any neighbour yet
  const std::vector<std::uint8_t> every_segment_;
  EdgeNews sent_;  // the last packet
  IterationStarts starts_;
  std::vector<MixEdge> edges_;
  std::vector<std::uint8_t> wanted_;  // scratch: fired or pending
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  float step_ = 0.0F;  // Δ
  std::uint64_t posted_bytes_ = 0;
  std::vector<ChangeQuantiser::Payload> heard_;  // in the packet that is being read, for the device to add
  std::vector<std::uint32_t> heard_positions_;
};

}  // namespace hearsay

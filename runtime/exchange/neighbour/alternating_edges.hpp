#pragma once
// Asynchronous mixing that keeps the mean: edges alternate (half-duplex), one end sends and then the other.
//   who may send:       the end that has heard last; a packet, empty where nothing fired
//   an event of i:      m = w_ij (x̂_j − x̂_i), x̂_i being what has just been sent:
//                       i:  x_i ← x_i + m   when it is sent, before the gradient is taken
//                       j:  x_j ← x_j − m   when it arrives, at the end of an iteration
//                       both:  x̂_i ← x̂_i + m,  x̂_j ← x̂_j − m
// One packet of an edge is under way at most, so both ends know the same pair of copies whenever one of them moves, to
// the last bit. Mean of the replicas and what is under way, −m of each packet, are kept for any delays, speeds and
// patterns of events. Copies follow the moves that both ends know: an end that fires often would otherwise pull the
// silent one again and again past where it is. An edge has one or two events an iteration, each with all of w_ij;
// D-PSGD has two, with half of the difference each.
// A gradient is of where the rank's own events have moved it, as in exact diffusion (yuan2018exact), and not of where
// it was before, as in D-PSGD and EXTRA: a step from there adds to the move, what the other ends answer meanwhile adds
// to both, and together they go too far: runs diverge in simulations. Nobody waits for anything by it: a
// rank knows its own move as soon as it sends.
// Own rule; what crosses and how is arrival's or difference's. boyd2006gossip exchanges by pairs that both stop for it.
// Where iterations are rounds of many local steps, a rank hears and answers between them as well. If it did so at their
// ends only, an edge would carry a packet every other round, and what ranks have made would be two rounds old.
// Cost: 5 memory passes over a segment that moved, per edge; a header of 32 bytes an iteration on a silent edge; on a
// slow link half as many events as if both ends sent at once.
#include "runtime/exchange/neighbour/edge_mixing.hpp"

namespace hearsay {

/// Where LinkOptions::alternating is set, in place of the link's `send`, `receive` and the mixing after it.
class AlternatingEdges {
 public:
  /// Both must outlive it; `mixing` is the link's.
  AlternatingEdges(NeighbourLink& link, EdgeMixing& mixing) : link_(link), mixing_(mixing) {}
  /// An iteration's `start`: sends along the edges where this end may, and moves this rank by its own events.
  void send(Iteration k, std::span<const std::uint8_t> fired);
  /// Its `finish`: moves this rank by the events that have come.
  void hear(Iteration k);
  /// Between two iterations that are far apart: hears and, where this end may send then, sends what has fired and could
  /// not go; moves by both. `has_to_answer`: whether there is any of that.
  void answer(Iteration k);
  bool has_to_answer() const { return link_.has_come() || link_.owes(); }

 private:
  void move_by_own_events(Iteration k);

  NeighbourLink& link_;
  EdgeMixing& mixing_;
};

/// `exchange.in_flight` must be 1 where edges alternate.
void require_one_in_flight(Config& exchange, const LinkOptions& options);

}  // namespace hearsay

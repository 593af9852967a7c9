#pragma once
// How a rank's edges are served.
#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// Where a lockstep rank takes its gradient: at the model that it sends, or at the mixed one.
///   consensus:  x ← W x − η g(x)            computing hides the messages: D-PSGD's order
///   diffusion:  x ← W x;  x ← x − η g(x)    combine, then adapt: waits first, and stands larger steps
/// tu2012diffusion: mixing never makes diffusion unstable where every rank alone is stable (ηh < 2, h the curvature),
/// and may make consensus so: ηh < 2 − s, s = 1 − λ_min(W). With drift correction diffusion is exact diffusion
/// (yuan2018exact), consensus EXTRA (shi2015extra). Stability is not accuracy: in every pair of runs that was measured
/// ranks end further apart under diffusion, on a sparse ring twice as far.
/// Deviates from the papers in: mixing by events, as the exchange has it. Asynchronous ranks have no such choice:
/// alternating_edges.hpp. Cost: no byte, no memory; messages travel while nobody computes.
enum class Strategy { consensus, diffusion };

struct LinkOptions {
  Schedule schedule = Schedule::lockstep;
  Iteration delay = 0;           ///< lockstep: copies are those of so many iterations ago; 0 or 1
  bool keep_own_copies = false;  ///< mixing reads MixEdge::ours, and x has changed since it was sent
  std::size_t in_flight = 1;     ///< asynchronous: packets of an edge that may be under way
  bool repeats = true;           ///< as MixingRule::repeats: the age of a copy counts whenever it mixes
  bool alternating = false;      ///< asynchronous: the two ends of an edge send in alternation (AlternatingEdges)

  /// Every edge has a pair of copies of its own, which follow the moves that both ends know; asynchronously always.
  bool edge_copies = false;

  Strategy strategy = Strategy::consensus;

  bool waits() const { return schedule == Schedule::lockstep; }
  /// Whether mixing is with what neighbours have sent in the same iteration.
  bool fresh() const { return waits() && delay == 0; }
  /// Whether what neighbours hold of this rank is a block an edge; else one for all of them.
  bool own_copy_by_edge() const { return edge_copies || !waits(); }
  /// As ExchangePlan::in_flight has it.
  std::optional<std::size_t> limit() const { return waits() ? std::nullopt : std::optional(in_flight); }
};

/// Reads `exchange.schedule`, `exchange.delay` and `exchange.in_flight`.
LinkOptions read_link_options(Config& exchange);
/// Reads `exchange.strategy`. Diffusion is for lockstep without a delay.
Strategy read_strategy(Config& exchange, const LinkOptions& link);
/// Reads `exchange.schedule` where there is only lockstep. `why_not` is what is said to `asynchronous`.
void read_lockstep(Config& exchange, std::string_view why_not);

}  // namespace hearsay

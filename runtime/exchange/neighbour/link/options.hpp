#pragma once
// How a rank's edges are served.
#include <cstddef>
#include <optional>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

struct LinkOptions {
  Schedule schedule = Schedule::lockstep;
  Iteration delay = 0;           ///< lockstep: copies are those of so many iterations ago; 0 or 1
  bool keep_own_copies = false;  ///< mixing reads MixEdge::ours
  std::size_t in_flight = 1;     ///< asynchronous: packets of an edge that may be under way
  bool repeats = true;           ///< as MixingRule::repeats: the age of a copy counts whenever it mixes
  bool by_turns = false;         ///< asynchronous: an edge has one packet under way, of one end and then the other

  /// Every edge has a pair of copies of its own, which follow the moves that both ends know; asynchronously always.
  bool edge_copies = false;

  /// Whether what neighbours hold of this rank is a block an edge; else one for all of them.
  bool own_copy_by_edge() const { return edge_copies || schedule == Schedule::asynchronous; }
  /// As ExchangePlan::in_flight has it.
  std::optional<std::size_t> limit() const {
    return schedule == Schedule::asynchronous ? std::optional(in_flight) : std::nullopt;
  }
};

/// Reads `exchange.schedule`, `exchange.delay` and `exchange.in_flight`.
LinkOptions read_link_options(Config& exchange);

}  // namespace hearsay

// Which edges an iteration uses: all of them, or those to and from the peers of its turn; and which packets of theirs.
#include "runtime/algorithms/neighbour/link.hpp"

namespace hearsay {

NeighbourLink::EdgeRange NeighbourLink::out_edges(Iteration k) const {
  const auto& turns = context_.neighbourhood.turns;
  if (turns.empty()) return {0, links_.size()};
  const std::size_t to = turns[static_cast<std::size_t>(k) % turns.size()].to;
  return {to, to + 1};
}

NeighbourLink::EdgeRange NeighbourLink::in_edges(Iteration k) const {
  const auto& turns = context_.neighbourhood.turns;
  if (turns.empty()) return {0, links_.size()};
  const std::size_t from = turns[static_cast<std::size_t>(k) % turns.size()].from;
  return {from, from + 1};
}

std::span<const MixEdge> NeighbourLink::edges(Iteration k) const {
  const auto [first, end] = in_edges(k);
  return std::span(edges_).subspan(first, end - first);
}

NeighbourLink::Options read_link_options(Config& exchange) {
  const Schedule schedule = read_schedule(exchange);
  const Iteration delay = exchange.integer(
      "delay", 0, Range::between(0, 1),
      "lockstep: mix with the neighbours' copies of this iteration, or of the one before, which have had a "
      "whole iteration to arrive");
  exchange.require(delay == 0 || schedule == Schedule::lockstep, "delay",
                   "an asynchronous rank waits for no iteration's copies: leave it at 0, or take schedule: lockstep");
  return {.schedule = schedule, .delay = delay};
}

}  // namespace hearsay

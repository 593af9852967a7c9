// Which edges an iteration uses: all of them, or those to and from the peers of its turn.
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

}  // namespace hearsay

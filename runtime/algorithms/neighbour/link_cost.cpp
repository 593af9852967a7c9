#include <algorithm>

#include "runtime/algorithms/neighbour/link.hpp"

namespace hearsay {

ExchangeCost link_cost(const Layout& layout, const Topology& topology, std::size_t packet_bound,
                       const LocalWork& selection, bool own_copy, const CostAssumptions& assumptions) {
  int degree = 0;
  for (int rank = 0; rank < topology.ranks(); ++rank)
    degree = std::max(degree, static_cast<int>(topology.neighbourhood(rank).sends()));
  const double fired_bytes = static_cast<double>(packet_bound - sizeof(PacketHeader)) * assumptions.event_fraction;
  return neighbour_cost({.degree = degree,
                         .mean_degree = static_cast<double>(topology.edges_in_use()) / topology.ranks(),
                         .values = layout.size(),
                         .packet_bytes = sizeof(PacketHeader) + fired_bytes,
                         .selection = assumptions.event_fraction * selection,
                         .own_copy = own_copy},
                        assumptions);
}

}  // namespace hearsay

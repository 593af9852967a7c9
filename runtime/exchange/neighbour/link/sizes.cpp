#include "runtime/exchange/neighbour/link/sizes.hpp"

#include <algorithm>

namespace hearsay {

bool travels_whole(const Sparsifier& sparsifier, std::size_t n) {
  if (!sparsifier.codec || n < sparsifier.dense_below) return true;
  return sparsifier.dense && sparsifier.codec->exact();
}

Body body_of(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return whole_segment;
  return sparsifier.codec->exact() ? encoded_values : encoded_changes;
}

std::size_t segment_bound(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return sizeof(SegmentHeader) + n * sizeof(float);
  const std::size_t k = kept_count(sparsifier.largest_density(), n);
  return sizeof(SegmentHeader) + sparsifier.codec->bound(sparsifier.selector->most(k, n), n);
}

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

std::size_t link_bytes(const Layout& layout, const LinkOptions& options, const Sparsifier& sparsifier,
                       std::size_t neighbours, std::size_t packet_bound) {
  const bool lockstep = options.schedule == Schedule::lockstep;
  const bool all_whole =
      std::ranges::all_of(layout.segments(), [&](const Segment& s) { return travels_whole(sparsifier, s.length); });
  const std::size_t own = lockstep ? std::min<std::size_t>(neighbours, 1) : neighbours;
  const std::size_t blocks = neighbours + (options.keep_own_copies || !all_whole ? own : 0) +
                             (options.keep_own_copies && options.delay > 0 ? own : 0);
  return blocks * layout.size() * sizeof(float) + own * packet_bound;
}

}  // namespace hearsay

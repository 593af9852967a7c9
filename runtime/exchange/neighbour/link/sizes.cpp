#include "runtime/exchange/neighbour/link/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace hearsay {

bool travels_whole(const Sparsifier& sparsifier, std::size_t n) {
  if (!sparsifier.codec || n < sparsifier.dense_below) return true;
  return sparsifier.dense && sparsifier.codec->exact();
}

std::optional<StepRule> step_rule_of(const Sparsifier& sparsifier) {
  return sparsifier.codec ? sparsifier.codec->step_rule() : std::nullopt;
}

std::size_t packet_bound(const Sparsifier& sparsifier, const Layout& layout, std::span<const std::uint8_t> segments) {
  std::size_t bytes = sizeof(PacketHeader), speaking = 0, values = 0;
  for (SegmentId s = 0; s < layout.count(); ++s) {
    const std::size_t length = layout[s].length;
    if (segments[s] == 0) continue;
    if (body_of(sparsifier, length) != value_events) {
      bytes += segment_bound(sparsifier, length);
      continue;
    }
    const std::size_t k = kept_count(sparsifier.largest_density(), length);
    ++speaking;
    values += sparsifier.selector->most(k, length);
  }
  if (speaking == 0) return bytes;
  return bytes + sizeof(SegmentHeader) + speaking * bytes_of_gain + sparsifier.codec->bound(values, layout.size());
}

double packet_of_events(const Layout& layout, double fraction) {
  const auto bits = [](double p) { return p > 0.0 ? -p * std::log2(p) : 0.0; };
  const double n = static_cast<double>(layout.size()), segments = static_cast<double>(layout.count());
  return sizeof(PacketHeader) + sizeof(SegmentHeader) + bytes_of_gain * segments +
         n * (fraction + bits(fraction) + bits(1.0 - fraction)) / 8.0;
}

Body body_of(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return whole_segment;
  if (counts_in_steps(sparsifier)) return value_events;
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
  const bool all_whole =
      std::ranges::all_of(layout.segments(), [&](const Segment& s) { return travels_whole(sparsifier, s.length); });
  const std::size_t own = options.own_copy_by_edge() ? neighbours : std::min<std::size_t>(neighbours, 1);
  const std::size_t blocks = neighbours + (options.keep_own_copies || !all_whole ? own : 0) +
                             (options.keep_own_copies && options.delay > 0 ? own : 0);
  return blocks * layout.size() * sizeof(float) + own * packet_bound;
}

}  // namespace hearsay

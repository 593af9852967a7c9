#include "runtime/exchange/neighbour/correction/strength.hpp"

#include <algorithm>

#include "runtime/exchange/neighbour/correction/gain.hpp"

namespace hearsay {
namespace {

double kept(const Topology& topology, int rank) { return topology.matrix(rank, rank); }

/// Whether an end of this edge keeps much less of its own than the edge gives.
bool keeps_little(double leaves, double weight) {
  constexpr double much_less = 0.25;
  return 1.0 - leaves < much_less * weight;
}

/// Half of the c that is stable where no distance moves by more than s of itself.
double half_of_bound(double usual, double s, bool delayed) {
  if (s <= 0.0) return usual;
  return delayed ? 1.0 - s : (2.0 - s) / s;
}

}  // namespace

EdgeStrength::EdgeStrength(const Topology& topology, int i, int j)
    : leaves_(1.0 - std::min(kept(topology, i), kept(topology, j))) {
  if (keeps_little(leaves_, topology.matrix(i, j))) of_graph_ = 1.0 - topology.spectrum().smallest;
}

double EdgeStrength::most(double usual, double step, bool delayed, double growth) const {
  constexpr double part = 1.0 / 8.0;
  double most = half_of_bound(usual, 2.0 * step * leaves_, delayed);
  if (of_graph_ > 0.0) most = std::max(most, part * std::min(usual, half_of_bound(usual, step * of_graph_, delayed)));
  return std::min(usual, double{of_8_bits(most / growth)});
}

}  // namespace hearsay

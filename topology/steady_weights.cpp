#include "topology/steady_weights.hpp"

#include <cmath>

namespace hearsay {

// By powers: every rank keeps a share of its own, so they settle.
std::vector<double> steady_weights(const Topology& topology) {
  constexpr double enough = 1e-6;
  std::vector<double> w(static_cast<std::size_t>(topology.ranks()), 1.0);
  if (!topology.directed()) return w;
  double moved = 1.0;
  for (int pass = 0; moved > enough && pass < 64 * topology.ranks(); ++pass) {
    const std::vector<double> before = w;
    moved = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = 0.0;
      for (const auto& [j, share] : topology.matrix.row(static_cast<int>(i)))
        w[i] += share * before[static_cast<std::size_t>(j)];
      moved = std::max(moved, std::abs(w[i] - before[i]));
    }
  }
  return w;
}

}  // namespace hearsay

// Graphs that change from iteration to iteration: W_t = (1 − w) I + w Π_t for the permutation of phase t.
#include <algorithm>
#include <stdexcept>

#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

/// Makes W x from x by calling `combine(i, from)` for every rank.
template <class Combine>
void for_each_pair(const GraphPhase& phase, Combine combine) {
  for (std::size_t sender = 0; sender < phase.size(); ++sender) combine(phase[sender], static_cast<int>(sender));
}

}  // namespace

void require_permutation(const GraphPhase& phase) {
  std::vector<int> sorted(phase);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < phase.size(); ++i) {
    if (sorted[i] != static_cast<int>(i) || phase[i] == static_cast<int>(i))
      throw std::logic_error("a phase must be a permutation without fixed points");
  }
}

MixingMatrix phase_matrix(const GraphPhase& phase, double weight) {
  MixingMatrix matrix(static_cast<int>(phase.size()));
  for_each_pair(phase, [&](int i, int from) {
    matrix(i, i) = 1.0 - weight;
    matrix(i, from) = weight;
  });
  return matrix;
}

MixingMatrix mean_matrix(std::span<const GraphPhase> phases, double weight) {
  MixingMatrix matrix(static_cast<int>(phases[0].size()));
  const double share = weight / (2.0 * static_cast<double>(phases.size()));
  for (const GraphPhase& phase : phases) {
    for_each_pair(phase, [&](int i, int from) {
      matrix(i, from) += share;
      matrix(from, i) += share;
    });
  }
  for (int i = 0; i < matrix.size(); ++i) matrix(i, i) = 1.0 - weight;
  return matrix;
}

}  // namespace hearsay

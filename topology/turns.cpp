// Graphs that change from iteration to iteration: W_t = (1 − w) I + w Π_t for the permutation of turn t.
#include <algorithm>
#include <stdexcept>

#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

/// Makes W x from x by calling `combine(i, from)` for every rank.
template <class Combine>
void for_each_pair(const Turn& turn, Combine combine) {
  for (std::size_t sender = 0; sender < turn.size(); ++sender) combine(turn[sender], static_cast<int>(sender));
}

}  // namespace

void require_permutation(const Turn& turn) {
  std::vector<int> sorted(turn);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < turn.size(); ++i) {
    if (sorted[i] != static_cast<int>(i) || turn[i] == static_cast<int>(i))
      throw std::logic_error("a turn must be a permutation without fixed points");
  }
}

MixingMatrix turn_matrix(const Turn& turn, double weight) {
  MixingMatrix matrix(static_cast<int>(turn.size()));
  for_each_pair(turn, [&](int i, int from) {
    matrix(i, i) = 1.0 - weight;
    matrix(i, from) = weight;
  });
  return matrix;
}

MixingMatrix mean_matrix(std::span<const Turn> turns, double weight) {
  MixingMatrix matrix(static_cast<int>(turns[0].size()));
  const double share = weight / (2.0 * static_cast<double>(turns.size()));
  for (const Turn& turn : turns) {
    for_each_pair(turn, [&](int i, int from) {
      matrix(i, from) += share;
      matrix(from, i) += share;
    });
  }
  for (int i = 0; i < matrix.size(); ++i) matrix(i, i) = 1.0 - weight;
  return matrix;
}

}  // namespace hearsay

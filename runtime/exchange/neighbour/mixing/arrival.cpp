// Arrival mixing: an event moves both ends of its edge, once.
//   if an event of i or of j crossed the edge {i, j} for this value since the last mixing:
//     x_i ← x_i + w_ij (x̂_j − x̂_i)            and j, on its side, x_j ← x_j + w_ij (x̂_i − x̂_j)
// Only the values of a sparse segment that have crossed move: both ends know which these were.
// Own rule; with every segment firing it is D-PSGD in another order of additions, with all segments firing every H
// iterations it is local SGD with neighbour averaging.
// Deviates from the paper in: ghosh2021eventgrad mixes every iteration with old copies (rule `stale`); this one uses
// a copy when it is news and never again. In lockstep both ends see the same pair of copies in the same iteration,
// so the mean over ranks is kept to rounding.
// Asynchronously edges alternate, so that both ends know which pair of copies an event moves: alternating_edges.hpp.
// Cost: 3 memory passes over the segments that moved, per edge; memory as `difference`.
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {
namespace {

class Arrival final : public MixingRule {
 public:
  void mix(const Mixing& mixing, std::span<float> x) const override { add_moves(mixing, *this, x); }
  void each_move(const Mixing& mixing, const std::function<void(const Move&)>& tell) const override {
    for (std::size_t e = 0; e < mixing.edges.size(); ++e)
      for (SegmentId s = 0; s < mixing.layout.count(); ++s)
        if (mixing.segments[s] != 0 && mixing.edges[e].crossed[s] != nothing)
          tell({.edge = e, .segment = s, .weight = mixing.edges[e].weight, .crossed_only = true});
  }
  bool keeps_mean() const override { return true; }
  bool repeats() const override { return false; }
  bool needs_own_copy() const override { return true; }
};

}  // namespace

std::unique_ptr<MixingRule> make_arrival() { return std::make_unique<Arrival>(); }

MixingEntry arrival_mixing() {
  return {.name = "arrival",
          .summary = "an event moves both ends of its edge once; keeps the mean, repeats nothing",
          .equation = "on an event of i or j: x_i <- x_i + w_ij (xhat_j - xhat_i), x_j <- x_j + w_ij (xhat_i - xhat_j)",
          .cost = "3 memory passes over the segments that moved, per edge; one block a neighbour plus the own copy",
          .citation = "none: Hearsay's own rule (docs/method/algorithms.md)",
          .make = [](Config&) { return make_arrival(); }};
}

}  // namespace hearsay

// Stale mixing, the paper's rule.
//   x_i ← w_ii x_i + Σ_j w_ij x̂_j        every iteration, with whatever copies x̂_j there are
// ghosh2021eventgrad, eq. (5); with fresh copies it is D-PSGD's product with W (lian2017dpsgd, eq. (2)).
// Deviates from the paper in: nothing. Note what it does: a silent neighbour's old copy goes on pulling the model
// back, and the mean over ranks is not kept (x_i moves, its copies elsewhere do not).
// Cost: deg + 2 memory passes; memory: one block a neighbour.
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {
namespace {

class Stale final : public MixingRule {
 public:
  void mix(const Mixing& mixing, std::span<float> x) const override {
    by_parts(mixing, x, [&](std::span<const MixEdge> edges, std::span<float> part) {
      mixing.device.mix_row(mixing.self_weight, edges, part);
    });
  }
  /// Rows of W sum to 1. Of differences to x itself: with copies that are not fresh the other end does not know them.
  void each_move(const Mixing& mixing, const std::function<void(const Move&)>& tell) const override {
    for (std::size_t e = 0; e < mixing.edges.size(); ++e)
      for (SegmentId s = 0; s < mixing.layout.count(); ++s)
        if (mixing.segments[s] != 0)
          tell({.edge = e, .segment = s, .weight = mixing.edges[e].weight, .crossed_only = false});
  }
};

}  // namespace

std::unique_ptr<MixingRule> make_stale() { return std::make_unique<Stale>(); }

MixingEntry stale_mixing() {
  return {.name = "stale",
          .summary = "the paper's rule: average with the neighbours' last copies at every iteration",
          .equation = "x_i <- w_ii x_i + sum_j w_ij xhat_j",
          .cost = "deg + 2 memory passes an iteration; one block of memory a neighbour",
          .citation = "ghosh2021eventgrad, eq. (5)",
          .make = [](Config&) { return make_stale(); }};
}

}  // namespace hearsay

// Difference mixing: gossip on the public copies.
//   x_i ← x_i + γ Σ_j w_ij (x̂_j − x̂_i)        every iteration; x̂_i is what j holds of i
// koloskova2019choco, Algorithm 1 (CHOCO-SGD), with an event trigger in place of, or before, the compressor.
// Deviates from the paper in: its order (step, send, mix) is `exchange.strategy: diffusion`; the default takes the
// gradient of the models before they are mixed, and differs from the second iterate on; copies change by events; the
// copy x̂_i is kept per edge where edges may lag each other.
// What i gains of an edge, j loses: the mean over ranks is kept for any pattern of events. A difference that is not
// refreshed is applied again: a feedback loop with delay. γ must fall with silence and density.
// Asynchronous ranks do not know how often the other end repeats, and drift correction would learn from each repeat:
// with either an event moves both ends of its edge once, by the whole difference of the segment. Asynchronously edges
// alternate (alternating_edges.hpp).
// Cost: deg + 3 memory passes, 2·deg + 2 where x̂_i is one of each edge, for up to 4 neighbours at a time. Memory: one
// block a neighbour, and one (lockstep) or deg (asynchronous) for x̂_i.
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {
namespace {

class Difference final : public MixingRule {
 public:
  explicit Difference(float gamma) : gamma_(gamma) {}
  void mix(const Mixing& mixing, std::span<float> x) const override {
    if (mixing.by_events) return add_moves(mixing, *this, x);
    by_parts(mixing, x, [&](std::span<const MixEdge> edges, std::span<float> part) {
      mixing.device.add_differences(gamma_, edges, part);
    });
  }
  void each_move(const Mixing& mixing, const std::function<void(const Move&)>& tell) const override {
    for (std::size_t e = 0; e < mixing.edges.size(); ++e)
      for (SegmentId s = 0; s < mixing.layout.count(); ++s)
        if (mixing.segments[s] != 0 && (!mixing.by_events || mixing.edges[e].crossed[s] != nothing))
          tell({.edge = e, .segment = s, .weight = gamma_ * mixing.edges[e].weight, .crossed_only = false});
  }
  bool keeps_mean() const override { return true; }
  double step() const override { return gamma_; }
  bool needs_own_copy() const override { return true; }

 private:
  float gamma_;
};

}  // namespace

std::unique_ptr<MixingRule> make_difference(float gamma) { return std::make_unique<Difference>(gamma); }

MixingEntry difference_mixing() {
  return {.name = "difference",
          .summary = "gossip on the public copies; with `strategy: diffusion` CHOCO-SGD; keeps the mean for any events",
          .equation = "x_i <- x_i + gamma sum_j w_ij (xhat_j - xhat_i)",
          .cost = "deg + 3 memory passes an iteration; one block a neighbour plus the own copy",
          .citation = "koloskova2019choco, Algorithm 1, whose order is `strategy: diffusion`",
          .make = [](Config& config) {
            return make_difference(static_cast<float>(
                config.real("gamma", 0.5, Range::fraction_above_zero(),
                            "step along the difference; smaller for rarer events and lower densities")));
          }};
}

}  // namespace hearsay

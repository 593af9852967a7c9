// MoTEF: momentum tracking whose models and trackers travel compressed, with error feedback.
//   start:    C(x_i − x̂_i) and C(y_i − ŷ_i) travel, and x̂_i, ŷ_i move by them on both ends
//   finish:   x_i ← x_i + γ Σ_j w_ij (x̂_j − x̂_i);  m_i(k) ← β m_i(k − 1) + (1 − β) g_i;
//             y_i ← y_i + γ Σ_j w_ij (ŷ_j − ŷ_i) + m_i(k) − m_i(k − 1);  the optimizer then applies y_i
// islamov2025motef, Algorithm 1, with β = 1 − λ, H = x̂ and G = ŷ. With β = 0 it is beer.
// Σ y_i = Σ m_i at every iteration, whatever the compressor keeps: both ends move by the same floats. Ranks with unlike
// data come to rest at the minimum of the sum, which compressed gossip of models alone (CHOCO-SGD) does not reach.
// Deviates from the paper in: the message of y_i(k) travels with that of x_i(k + 1), which is when it is first used;
// copies begin as the common initial model and as 0, y and m as 0, so y_0 = (1 − β) g_0. C is `sparsify`: a tensor at a
// time, of x and of y apart; dense by default, and then γ may be 1. Lower densities need a smaller γ. Asynchronous
// trackers no longer sum to the momenta, and are refused.
// Cost per iteration and directed edge: two messages a segment; memory: two blocks a neighbour, two for x̂ and ŷ, and y
// and m; time: twice the passes of `difference` mixing, and 6 words for each value.
#include "runtime/exchange/neighbour/compressed.hpp"
#include "runtime/exchange/neighbour/edge_mixing.hpp"
#include "runtime/exchange/neighbour/plan.hpp"

namespace hearsay {
namespace {

class CompressedTracking final : public Exchange, public Measures {
 public:
  CompressedTracking(const ExchangeContext& context, const CompressedGossip& gossip, float momentum)
      : context_(context),
        momentum_(momentum),
        velocity_(context.replica.layout.size()),
        y_(context.replica.layout.size()),
        tracker_(context.replica.layout, y_.span(), y_.span()),
        of_tracker_(context.with(on_the_same_device(tracker_, context))),
        models_(context_, gossip.link, gossip.compressor->fresh()),
        trackers_(of_tracker_, gossip.link, gossip.compressor->fresh()),
        rule_(gossip.mixing),
        mix_models_(context_, models_, *rule_, nullptr),
        mix_trackers_(of_tracker_, trackers_, *rule_, nullptr) {}

  void start(Iteration k) override {
    models_.send(k);
    trackers_.send(k);
  }
  void finish(Iteration k) override {
    models_.receive(k);
    mix_models_.mix(k, events());
    trackers_.receive(k);
    mix_trackers_.mix(k, events());
    const PhaseTimer timer(context_.ledger, Phase::mix);
    track(y_.span(), context_.replica.gradients.span(), velocity_.span());
  }
  void state(Archive& archive) override {
    archive.values("tracker", y_.span());
    archive.values("momentum", velocity_.span());
    models_.state(archive);
    trackers_.state(archive);
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::span<const std::uint8_t> events() const override { return models_.every_segment(); }

 private:
  static Parameters& on_the_same_device(Parameters& tracker, const ExchangeContext& context) {
    tracker.device = context.replica.device;
    return tracker;
  }
  void track(std::span<float> y, std::span<float> g, std::span<float> m) const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float before = m[i];
      m[i] = momentum_ * before + (1.0F - momentum_) * g[i];
      y[i] += m[i] - before;
      g[i] = y[i];
    }
  }

  ExchangeContext context_;
  const float momentum_;  // β
  FloatBlock velocity_;   // m
  FloatBlock y_;
  Parameters tracker_;  // y in place of x; nobody asks for its gradients
  ExchangeContext of_tracker_;
  NeighbourLink models_, trackers_;
  std::shared_ptr<const MixingRule> rule_;
  EdgeMixing mix_models_, mix_trackers_;
};

std::unique_ptr<ExchangePlan> make_motef(Config& exchange, Config& root) {
  const double momentum =
      exchange.real("momentum", 0.9, Range::fraction_below_one(),
                    "β = 1 − λ: of the mean of the gradients so far; leave the optimizer's own at 0");
  return compressed_tracking_plan(exchange, root, momentum);
}

}  // namespace

std::unique_ptr<ExchangePlan> compressed_tracking_plan(Config& exchange, Config& root, double momentum) {
  const CompressedGossip its = read_compressed(
      exchange, root,
      "; trackers that are mixed at different times no longer sum to the gradients or momenta; leave it at lockstep");
  return neighbour_plan({.link = its.link,
                         .sparsifier = its.compressor,
                         .links = 2,
                         .blocks = 2,
                         .words = 6.0,
                         .laws = {.keeps_mass = true},
                         .linear = [its, momentum](const Topology&) -> std::optional<LinearIteration> {
                           LinearIteration::Tracking tracking{.momentum = momentum, .gain = 1.0 - momentum};
                           return linear_gossip(its, {.tracking = tracking});
                         },
                         .build =
                             [its, momentum](const ExchangeContext& context) {
                               return std::make_unique<CompressedTracking>(context, its, static_cast<float>(momentum));
                             }});
}

ExchangeEntry motef_exchange() {
  return {.name = "motef",
          .summary = "momentum tracking, compressed: unlike data and noisy gradients, with sparse messages",
          .equation = "as beer, with m_i <- beta m_i + (1 - beta) g_i in place of g_i",
          .cost = "twice the messages of dpsgd, whole or sparse; two copies a neighbour and four blocks of memory",
          .citation = "islamov2025motef, Algorithm 1",
          .make = make_motef};
}

}  // namespace hearsay

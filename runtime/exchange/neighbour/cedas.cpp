// CEDAS: exact diffusion with compressed messages, and steps that may change.
//   start:    C(x_i − x̂_i) travels, and x̂_i moves by it on both ends;  u_i ← γ/2 Σ_j w_ij (x̂_j − x̂_i);
//             x_i ← x_i + u_i;  d_i ← d_i − u_i
//   finish:   x_i ← x_i − d_i;  the optimizer then applies g_i, the gradient at the mixed model
// huang2024cedas, Algorithm 1; with a constant step LEAD (liu2021lead). Without a compressor and with γ = 1 it is exact
// diffusion (yuan2018exact) by (I + W)/2. d_i comes to rest at −η g_i: what a rank's own data would pull it away by. So
// ranks with unlike data meet at the minimum of the sum, and Σ d_i = 0 at every iteration.
// Deviates from the paper in: x̂_i ← x̂_i + α C(·) with α = 1, for compressors that only ever come closer (top-k, all
// quantisers here); d_i is not divided by η, which is what "adaptive" means, and needs no rate. C is `sparsify`, a
// tensor at a time. It waits before the gradient, as `strategy: diffusion` does, and asynchronous ranks are refused.
// Cost per iteration and directed edge: one message a segment; memory: one block a neighbour, one for x̂_i, d and x
// before it was mixed; time: the passes of `difference` mixing, and 9 words for each value.
#include <algorithm>

#include "runtime/exchange/neighbour/compressed.hpp"
#include "runtime/exchange/neighbour/edge_mixing.hpp"
#include "runtime/exchange/neighbour/plan.hpp"

namespace hearsay {
namespace {

class Cedas final : public Exchange, public Measures {
 public:
  Cedas(const ExchangeContext& context, const CompressedGossip& gossip)
      : context_(context),
        link_(context_, gossip.link, gossip.compressor->fresh()),
        rule_(gossip.mixing),
        mixing_(context_, link_, *rule_, nullptr),
        before_(context.replica.layout.size()),
        pull_(context.replica.layout.size()) {}

  void start(Iteration k) override {
    link_.send(k);
    link_.receive(k);
    const auto x = context_.replica.values.span(), before = before_.span(), d = pull_.span();
    std::ranges::copy(x, before.begin());
    mixing_.mix(k, events());
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (std::size_t i = 0; i < x.size(); ++i) d[i] -= x[i] - before[i];
  }
  void finish(Iteration) override {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const auto x = context_.replica.values.span(), d = pull_.span();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= d[i];
  }
  void state(Archive& archive) override {
    archive.values("pull of the own data", pull_.span());
    link_.state(archive);
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::span<const std::uint8_t> events() const override { return link_.every_segment(); }

 private:
  ExchangeContext context_;
  NeighbourLink link_;
  std::shared_ptr<const MixingRule> rule_;
  EdgeMixing mixing_;
  FloatBlock before_;  // x before it was mixed
  FloatBlock pull_;    // d
};

std::unique_ptr<ExchangePlan> make_cedas(Config& exchange, Config& root) {
  constexpr double half_of_the_step = 0.5;
  CompressedGossip its = read_compressed(
      exchange, root, "; both ends of an edge have to move by the same difference; leave it at lockstep",
      half_of_the_step);
  its.link.strategy = Strategy::diffusion;
  return neighbour_plan(
      {.link = its.link,
       .sparsifier = its.compressor,
       .blocks = 2,
       .words = 9.0,
       .laws = {.keeps_mass = true},
       .linear =
           [its](const Topology&) {
             return linear_gossip(
                 its, {.strategy = Strategy::diffusion, .strength = [](int, int) { return 1.0; }, .in_step = false});
           },
       .build = [its](const ExchangeContext& context) { return std::make_unique<Cedas>(context, its); }});
}

}  // namespace

ExchangeEntry cedas_exchange() {
  return {
      .name = "cedas",
      .summary = "exact diffusion, compressed: the minimum of the sum whatever the data, one sparse message an edge",
      .equation =
          "u_i = gamma/2 sum_j w_ij (xhat_j - xhat_i);  d_i <- d_i - u_i;  x_i <- x_i + u_i - d_i - eta g_i(x_i + u_i)",
      .cost = "messages as dpsgd, whole or sparse; a copy a neighbour and three blocks of memory",
      .citation = "huang2024cedas, Algorithm 1",
      .make = make_cedas};
}

}  // namespace hearsay

// Quasi-global momentum: the momentum of a rank is that of the models' common way, and not of its own gradients.
//   finish:   x ← Σ_j w_ij x_j;  g ← g + β m̂;  the optimizer then does x_{k+1} = x − η g
//   stepped:  m̂ ← β m̂ + (1 − β) (x_k − x_{k+1}) / η              per segment; η < 0 where x moves along its gradient
// lin2021quasi, Algorithm 1 (QG-DSGDm), with μ = β as in its experiments.
// Deviates from the paper in: x_k is mixed while the gradient is computed (adapt while communicate); there the step
// comes first and x_k − η (β m̂ + g) is mixed. Asynchronous ranks and `delay` use the copies that dpsgd would. Where
// η = 0 nothing is known of the way, and m̂ stays. The optimizer should be plain SGD: momentum of its own comes on
// top.
// Cost per iteration and directed edge: as dpsgd, not a byte more; memory: as dpsgd and two blocks, m̂ and x_k; time: 9
// words for each value.
#include <algorithm>
#include <cmath>

#include "runtime/exchange/neighbour/link/link.hpp"
#include "runtime/exchange/neighbour/plan.hpp"

namespace hearsay {
namespace {

class QuasiGlobalMomentum final : public Exchange, public Measures, public IdleWork {
 public:
  QuasiGlobalMomentum(const ExchangeContext& context, LinkOptions options, float momentum)
      : context_(context),
        link_(context, options, {}),
        momentum_(momentum),
        direction_(context.replica.layout.size()),
        before_(context.replica.layout.size()) {}

  void start(Iteration k) override { link_.send(k); }
  void finish(Iteration k) override {
    link_.receive(k);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const auto x = context_.replica.values.span(), g = context_.replica.gradients.span();
    std::ranges::copy(x, before_.span().begin());
    context_.device().mix_row(static_cast<float>(context_.neighbourhood.self_weight), link_.edges(k), x);
    const auto m = direction_.span();
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += momentum_ * m[i];
  }
  void stepped(Iteration) override {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const Layout& layout = context_.replica.layout;
    for (SegmentId s = 0; s < layout.count(); ++s) {
      const auto share = static_cast<float>((1.0 - momentum_) * context_.steps[s].sign() / eta(s));
      if (!std::isfinite(share)) continue;
      const auto x = context_.replica.values.segment(layout[s]), before = before_.segment(layout[s]),
                 m = direction_.segment(layout[s]);
      for (std::size_t i = 0; i < m.size(); ++i) m[i] = momentum_ * m[i] + share * (before[i] - x[i]);
    }
  }
  Capabilities capabilities() override { return {.measures = this, .idle_work = this}; }
  bool idle(Iteration k) override {
    start(k);
    link_.receive(k);
    return false;
  }
  void drain() override { link_.take_arrived(); }
  void state(Archive& archive) override {
    archive.values("momentum", direction_.span());
    link_.state(archive);
  }
  std::span<const std::uint8_t> events() const override { return link_.every_segment(); }

 private:
  double eta(SegmentId s) const { return context_.steps[s].learning_rate.value(); }

  ExchangeContext context_;
  NeighbourLink link_;
  float momentum_;
  FloatBlock direction_;  // m̂
  FloatBlock before_;     // x_k
};

std::unique_ptr<ExchangePlan> make_quasi_global_momentum(Config& exchange, Config&) {
  const LinkOptions link = read_link_options(exchange);
  const double momentum =
      exchange.real("momentum", 0.9, Range::fraction_below_one(),
                    "β: of the models' way so far in the next step; leave the optimizer's own at 0");
  return neighbour_plan({.link = link,
                         .blocks = 2,
                         .words = 9.0,
                         .laws = {.follows_phases = link.fresh(), .keeps_mass = link.fresh(), .measures_steps = true},
                         .linear = [link, momentum](const Topology&) -> std::optional<LinearIteration> {
                           if (!link.waits()) return std::nullopt;
                           return LinearIteration{.own_values = true, .delay = link.delay, .way = momentum};
                         },
                         .build =
                             [link, momentum](const ExchangeContext& context) {
                               return std::make_unique<QuasiGlobalMomentum>(context, link,
                                                                            static_cast<float>(momentum));
                             }});
}

}  // namespace

ExchangeEntry quasi_global_momentum_exchange() {
  return {.name = "quasi_global_momentum",
          .summary = "dpsgd with momentum along the way that the mixed models go (QG-DSGDm)",
          .equation =
              "x_i <- sum_j w_ij x_j - eta (g_i + beta m_i);  m_i <- beta m_i + (1 - beta) (x_i before - x_i) / eta",
          .cost = "bytes and messages as dpsgd; two blocks of memory, 9 words of work for each value",
          .citation = "lin2021quasi, Algorithm 1",
          .make = make_quasi_global_momentum};
}

}  // namespace hearsay

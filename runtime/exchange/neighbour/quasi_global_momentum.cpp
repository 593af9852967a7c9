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
#include <optional>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {
namespace {

class QuasiGlobalMomentum final : public Exchange, public Measures, public IdleWork {
 public:
  QuasiGlobalMomentum(const ExchangeContext& context, LinkOptions options, float momentum)
      : context_(context),
        link_(context, options, {}),
        momentum_(momentum),
        every_segment_(context.replica.layout.count(), std::uint8_t{1}),
        direction_(context.replica.layout.size()),
        before_(context.replica.layout.size()) {}

  void start(Iteration k) override {
    for (SegmentId s = 0; s < every_segment_.size(); ++s) context_.ledger.event(s);
    link_.send(k, every_segment_);
  }
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
  std::span<const std::uint8_t> events() const override { return every_segment_; }

 private:
  double eta(SegmentId s) const { return context_.steps[s].learning_rate.value(); }

  ExchangeContext context_;
  NeighbourLink link_;
  float momentum_;
  std::vector<std::uint8_t> every_segment_;
  FloatBlock direction_;  // m̂
  FloatBlock before_;     // x_k
};

class QuasiGlobalMomentumPlan final : public ExchangePlan {
 public:
  explicit QuasiGlobalMomentumPlan(Config& exchange)
      : options_(read_link_options(exchange)),
        momentum_(exchange.real("momentum", 0.9, Range::fraction_below_one(),
                                "β: of the models' way so far in the next step; leave the optimizer's own at 0")) {}
  std::size_t packet_bound(const Layout& layout, int) const override {
    return sizeof(PacketHeader) + layout.count() * sizeof(SegmentHeader) + layout.size() * sizeof(float);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    constexpr double words = 9.0;
    ExchangeCost cost =
        link_cost(layout, topology, packet_bound(layout, topology.ranks()), {}, false, {.hosts = assumptions.hosts});
    cost.local = cost.local + LocalWork{.moved_bytes = words * sizeof(float) * static_cast<double>(layout.size())};
    cost.waits = options_.schedule == Schedule::lockstep;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<QuasiGlobalMomentum>(context, options_, static_cast<float>(momentum_));
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    return link_bytes(layout, options_, {}, neighbours, packet_bound(layout, ranks)) +
           2 * layout.size() * sizeof(float);
  }
  Schedule schedule() const override { return options_.schedule; }
  std::optional<std::size_t> in_flight() const override { return options_.limit(); }
  ExchangeLaws laws() const override {
    const bool exact = options_.schedule == Schedule::lockstep && options_.delay == 0;
    return {.along_graph = true, .follows_turns = exact, .keeps_mass = exact, .measures_steps = true};
  }

 private:
  LinkOptions options_;
  double momentum_;
};

}  // namespace

ExchangeEntry quasi_global_momentum_exchange() {
  return {.name = "quasi_global_momentum",
          .summary = "dpsgd with momentum along the way that the mixed models go (QG-DSGDm)",
          .equation =
              "x_i <- sum_j w_ij x_j - eta (g_i + beta m_i);  m_i <- beta m_i + (1 - beta) (x_i before - x_i) / eta",
          .cost = "bytes and messages as dpsgd; two blocks of memory, 9 words of work for each value",
          .citation = "lin2021quasi, Algorithm 1",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<QuasiGlobalMomentumPlan>(exchange);
          }};
}

}  // namespace hearsay

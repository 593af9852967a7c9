// Momentum tracking: gradient tracking of the momentum, so that unlike data do not bend it.
//   start:    x_i and y_i travel
//   finish:   x_i ← Σ_j w_ij x_j;  u_i ← β u_i + g_i;  y_i ← Σ_j w_ij y_j + u_i(k) − u_i(k − 1);
//             the optimizer, plain SGD, then applies y_i
// takezawa2023momentum, Algorithm 1, whose c_i is u_i − Σ_j w_ij y_j.
// Σ y_i = Σ u_i at every iteration. y_0 = u_0 = g_0. With β = 0 it is gradient_tracking.
// Deviates from the paper in: x_k is mixed while the gradient is computed (adapt while communicate); there the step
// comes first and x_k − η y is mixed. As for gradient_tracking, asynchronous ranks are refused. Momentum of the
// optimizer comes on top; a constant gradient moves x by η/(1 − β) of it an iteration.
// Cost per iteration and directed edge: as gradient_tracking; memory: as gradient_tracking, u in place of g(k − 1).
#include "runtime/exchange/neighbour/momentum_tracking.hpp"

#include "runtime/exchange/neighbour/augmented.hpp"
#include "runtime/exchange/neighbour/plan.hpp"

namespace hearsay {
namespace {

std::size_t tracker(std::size_t n) { return n; }

class Tracking final : public Exchange, public Measures {
 public:
  Tracking(const ExchangeContext& context, float momentum)
      : context_(context),
        link_(context, tracker, 0.0F),
        momentum_(momentum),
        velocity_(context.replica.layout.size()) {}

  void start(Iteration k) override {
    link_.take_x();
    link_.send(k);
  }
  void finish(Iteration k) override {
    link_.mix(k);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const Layout& layout = context_.replica.layout;
    for (SegmentId s = 0; s < layout.count(); ++s)
      track(link_.beside(s), context_.replica.gradients.segment(layout[s]), velocity_.segment(layout[s]));
  }
  void state(Archive& archive) override {
    link_.state(archive);
    archive.values("gradient or momentum before", velocity_.span());
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::span<const std::uint8_t> events() const override { return link_.events(); }

 private:
  void track(std::span<float> y, std::span<float> g, std::span<float> u) const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float before = u[i];
      u[i] = momentum_ * before + g[i];
      y[i] += u[i] - before;
      g[i] = y[i];
    }
  }

  ExchangeContext context_;
  AugmentedLink link_;
  float momentum_;       // β
  FloatBlock velocity_;  // u
};

std::unique_ptr<ExchangePlan> make_momentum_tracking(Config& exchange, Config&) {
  return tracking_plan(exchange, exchange.real("momentum", 0.9, Range::fraction_below_one(),
                                               "β: of the velocity in the next one; leave the optimizer's own at 0"));
}

}  // namespace

std::unique_ptr<ExchangePlan> tracking_plan(Config& exchange, double momentum) {
  read_lockstep(
      exchange,
      "; trackers that are mixed at different times no longer sum to the gradients or momenta; leave it at lockstep");
  return neighbour_plan({.beside = tracker,
                         .blocks = 1,
                         .words = 10.0,
                         .laws = {.follows_phases = true, .keeps_mass = true},
                         .linear =
                             [momentum](const Topology&) {
                               return LinearIteration{.tracking = LinearIteration::Tracking{.momentum = momentum}};
                             },
                         .build =
                             [momentum](const ExchangeContext& context) {
                               return std::make_unique<Tracking>(context, static_cast<float>(momentum));
                             }});
}

ExchangeEntry momentum_tracking_exchange() {
  return {
      .name = "momentum_tracking",
      .summary = "ranks step along a tracked mean of all momenta: momentum whatever their data",
      .equation = "x_i <- sum_j w_ij x_j - eta y_i;  u_i <- beta u_i + g_i;  y_i <- sum_j w_ij y_j + u_i(k) - u_i(k-1)",
      .cost = "messages as dpsgd, twice its bytes: 8 n; three more blocks of memory, one more a neighbour",
      .citation = "takezawa2023momentum, Algorithm 1",
      .make = make_momentum_tracking};
}

}  // namespace hearsay

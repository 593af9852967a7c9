#include "runtime/exchange/outer/gossip.hpp"

#include <algorithm>
#include <utility>

namespace hearsay {
namespace {

bool of_differences(const OuterGossipOptions& options) {
  return options.velocity == OuterGossipOptions::Velocity::differences;
}
/// z's step; the other momenta come with the mixed model.
OuterOptions of_step(const OuterGossipOptions& options) {
  OuterOptions step = options.outer;
  if (!of_differences(options)) step.momentum = 0.0;
  return step;
}

class OuterGossip final : public Exchange, public Measures, public IdleWork {
 public:
  OuterGossip(const ExchangeContext& context, const OuterGossipOptions& options, const ExchangePlan& exchange)
      : context_(context),
        options_(options.outer),
        step_(of_step(options), OuterOptimizer::Form::nesterov, context.replica.layout.size()),
        halfway_(options.velocity == OuterGossipOptions::Velocity::halfway ? 0.5F : 0.0F),
        waits_(exchange.schedule() == Schedule::lockstep),
        overlaps_(options.overlap),
        model_(context.replica.layout.size()),
        difference_(context.replica.layout.size()),
        before_(options_.momentum > 0.0 && !of_differences(options) ? context.replica.layout.size() : 0),
        round_block_(context.replica.layout, model_.span(), difference_.span()),
        none_fired_(context.replica.layout.count()),
        outer_steps_(context.replica.layout.count(),
                     {.learning_rate = options.outer.learning_rate, .momentum = options.outer.momentum}) {
    round_block_.device = context.replica.device;
    std::ranges::copy(context.replica.values.span(), model_.span().begin());
    std::ranges::copy(model_.span().first(before_.size()), before_.span().begin());
    exchange_ = exchange.build(of_round(context));
    of_rounds_ = exchange_->capabilities();
  }

  void start(Iteration) override {
    fires_ = false;
    if (due_) return begin_round();
    if (of_rounds_.round_work->has_to_answer()) apart([&] { of_rounds_.round_work->answer(round_); });
  }
  void finish(Iteration) override {
    if (due_) end_round();
  }
  void stepped(Iteration k) override {
    if (!options_.round_ends(k)) return;
    take_step();
    due_ = true;
    if (overlaps_) return;
    begin_round();
    end_round();
  }
  // In lockstep all are at the same step of a round, and what they have made alone adds up. Else it does not: each has
  // gone another part of the way to the minimum of its own data.
  void end() override {
    if (!due_) {
      std::ranges::copy(model_.span(), context_.replica.values.span().begin());
      return;
    }
    begin_round();
    end_round();
  }
  // Between two rounds, whatever the local steps have done so far, x moves as the round's model does.
  bool idle(Iteration) override {
    apart([&] { of_rounds_.idle_work->idle(round_++); });
    due_ = false;
    return false;
  }
  void drain() override {
    apart([&] { of_rounds_.idle_work->drain(); });
  }
  Capabilities capabilities() override { return {.measures = this, .idle_work = waits_ ? nullptr : this}; }
  void state(Archive& archive) override {
    archive.values("outer model", model_.span());
    archive.values("outer model of the round before", before_.span());
    step_.state(archive);
    archive.value("rounds", round_);
    if (round_ < 0) archive.refuse("rounds", "are negative");
    archive.value("a round has ended", due_);
    exchange_->state(archive);
  }
  std::span<const double> thresholds() const override { return of_rounds_.measures->thresholds(); }
  std::span<const double> norms() const override { return of_rounds_.measures->norms(); }
  std::span<const std::uint8_t> events() const override {
    return fires_ ? of_rounds_.measures->events() : std::span<const std::uint8_t>(none_fired_);
  }
  std::vector<Share> shares() const override { return of_rounds_.measures->shares(); }

 private:
  /// What the exchange works with. A persistent outer difference moves the model by η / (1 − μ) of it.
  ExchangeContext of_round(const ExchangeContext& context) {
    ExchangeContext made = context.with(round_block_);
    made.iterations_per_epoch = context.iterations_per_epoch.in_rounds(options_.local_steps);
    made.steps = outer_steps_;
    return made;
  }
  /// By the v that is known by now: asynchronously it is newer than what the round began with.
  void take_step() {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const auto phi = model_.span(), x = context_.replica.values.span(), d = difference_.span();
    for (std::size_t i = 0; i < d.size(); ++i) x[i] = d[i] = phi[i] - x[i];
    of_rounds_.round_work->correct();
    step_.step(d, 0, phi);
    std::ranges::copy(x, d.begin());  // `finish` looks at it once more, and v is none of it
    std::ranges::copy(phi, x.begin());
  }
  void begin_round() {
    exchange_->start(round_);
    fires_ = true;
  }
  void end_round() {
    exchange_->finish(round_);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    if (before_.size() != 0) keep_moving();
    std::ranges::copy(model_.span(), context_.replica.values.span().begin());
    due_ = false;
    ++round_;
  }
  /// x is still z: nothing has moved it since it was sent.
  void keep_moving() {
    const auto phi = model_.span(), z = context_.replica.values.span(), before = before_.span();
    const auto mu = static_cast<float>(options_.momentum);
    for (std::size_t i = 0; i < z.size(); ++i) {
      const float u = z[i] + halfway_ * (phi[i] - z[i]);
      phi[i] += mu * (u - before[i]);
      before[i] = u;
    }
  }
  /// x ← x + (φ after − φ before); exactly φ where x was.
  template <class Work>
  void apart(const Work& work) {
    const auto x = context_.replica.values.span(), phi = model_.span();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= phi[i];
    work();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += phi[i];
  }

  ExchangeContext context_;
  OuterOptions options_;
  OuterOptimizer step_;
  const float halfway_;  // how far u lies from z towards what mixing has made of it
  const bool waits_;
  const bool overlaps_;
  FloatBlock model_;       // φ, and z from the round's end until it has mixed
  FloatBlock difference_;  // D, the gradient of a round; D − v while the step is taken
  FloatBlock before_;      // u of the round before; empty without such a momentum
  Parameters round_block_;
  std::vector<std::uint8_t> none_fired_;
  const std::vector<StepResponse> outer_steps_;  // of the exchange's gradient, the outer difference
  std::unique_ptr<Exchange> exchange_;
  Capabilities of_rounds_;  // all of a neighbour exchange's
  Iteration round_ = 0;
  bool due_ = false;    // a round has ended, and its z has not been mixed
  bool fires_ = false;  // the iteration is one of a round that mixes
};

class OuterGossipPlan final : public ExchangePlan {
 public:
  OuterGossipPlan(const OuterGossipOptions& options, std::unique_ptr<ExchangePlan> exchange)
      : options_(options), exchange_(std::move(exchange)) {}

  std::size_t packet_bound(const Layout& layout, int ranks) const override {
    return exchange_->packet_bound(layout, ranks);
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<OuterGossip>(context, options_, *exchange_);
  }
  Schedule schedule() const override { return exchange_->schedule(); }
  Iteration local_steps() const override { return options_.outer.local_steps; }
  std::optional<std::size_t> in_flight() const override { return exchange_->in_flight(); }
  bool survives_deaths() const override { return exchange_->survives_deaths(); }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    return exchange_->worst_case_bytes(layout, topology);
  }
  // What hides behind one gradient of H is left out.
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const std::optional<ExchangeCost> round = exchange_->cost(layout, topology, assumptions);
    if (!round) return std::nullopt;
    constexpr double words = 12.0;  // φ, x and D at the end of a round; φ, z, u before and x after mixing
    ExchangeCost cost = of_an_iteration(*round, local_steps(), words * static_cast<double>(layout.size()));
    cost.overlaps = options_.overlap && local_steps() == 1;
    return cost;
  }
  ExchangeLaws laws() const override {
    ExchangeLaws laws = exchange_->laws();
    laws.keeps_mass = laws.keeps_mass && options_.outer.plain();
    laws.measures_steps = false;  // the outer step, which is known
    return laws;
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    const std::size_t blocks = options_.outer.momentum > 0.0 ? 3 : 2;
    return exchange_->kept_bytes(layout, neighbours, ranks) + blocks * layout.size() * sizeof(float);
  }
  std::vector<std::string> warnings(const Topology& topology) const override {
    std::vector<std::string> said = exchange_->warnings(topology);
    constexpr double tried = 0.5;
    if (schedule() == Schedule::asynchronous && options_.outer.momentum > tried && !of_differences(options_))
      said.push_back(
          "exchange.outer: where ranks mix what has come, momentum of models takes what is under way for a step: 0.9 "
          "has diverged. Take velocity: differences, or momentum: 0.5");
    return said;
  }
  void require_ranks(int ranks) const override { exchange_->require_ranks(ranks); }

 private:
  OuterGossipOptions options_;
  std::unique_ptr<ExchangePlan> exchange_;
};

}  // namespace

OuterGossipOptions read_outer_gossip(Config& exchange, Schedule schedule, OuterGossipOptions::Velocity usual) {
  const std::vector<std::string> names{"own", "halfway", "differences"};  // in the order of the enumeration
  const std::string velocity =
      exchange.section("outer").choice("velocity", names[static_cast<std::size_t>(usual)], names,
                                       "what momentum goes by: a rank's own z; halfway from there to what mixing makes "
                                       "of it, by which models come together sooner; or outer differences alone, which "
                                       "asynchronous gossip_outer needs and has by default");
  OuterGossipOptions options;
  options.velocity = static_cast<OuterGossipOptions::Velocity>(std::ranges::find(names, velocity) - names.begin());
  options.overlap =
      schedule == Schedule::asynchronous ||
      exchange.flag(
          "overlap", false,
          "a round's packets travel while the next gradient is computed, which is then one of the model before "
          "mixing; false: ranks wait for them at the round's end");
  options.outer = read_outer(exchange, {.local_steps = 50, .learning_rate = 0.7, .momentum = 0.5});
  return options;
}

std::unique_ptr<ExchangePlan> outer_gossip_plan(const OuterGossipOptions& options,
                                                std::unique_ptr<ExchangePlan> exchange) {
  return std::make_unique<OuterGossipPlan>(options, std::move(exchange));
}

}  // namespace hearsay

// D-PSGD: decentralised parallel stochastic gradient descent, the baseline.
//   x_i ← Σ_j w_ij x_j − η g_i(x_i)
// lian2017dpsgd, Algorithm 1; in the form that mixes while the gradient is computed (adapt while communicate), as
// ghosh2021eventgrad's Algorithm A.
// On a graph that changes W is that of iteration k, W_k (ying2021exponential), and only its peer is sent to.
// Deviates from the paper in: nothing in lockstep without `delay`, with which the x_j are those of iteration k − 1.
// Asynchronous ranks use the newest copies that have arrived; with a correction, which needs what i gains of an edge
// to be what j loses, they take turns (turns.hpp). Cost per iteration and directed edge: one message a
// segment, 4·n bytes of values, 32 + 16·segments bytes of headers; memory: one block a neighbour; time: deg + 2 memory
// passes to mix.
#include <optional>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"
#include "runtime/exchange/neighbour/strategy.hpp"
#include "runtime/exchange/neighbour/turns.hpp"

namespace hearsay {
namespace {

class DPsgd final : public Exchange, public Measures, public IdleWork, public RoundWork {
 public:
  DPsgd(const ExchangeContext& context, LinkOptions options, Strategy strategy, const CorrectionPlan& correction)
      : context_(context),
        strategy_(strategy),
        link_(context, options, {}),
        every_segment_(context.replica.layout.count(), std::uint8_t{1}),
        copies_are_current_(!options.keep_own_copies),
        step_along_differences_(options.delay == 0 ? 1.0F : 0.5F) {
    if (correction.on()) drift_.emplace(correction.strength, context, link_.settling(), 1.0);
    say_gains(0);  // what comes before this rank has begun is learnt from, too
  }

  void start(Iteration k) override {
    for (SegmentId s = 0; s < every_segment_.size(); ++s) context_.ledger.event(s);
    last_ = k;
    say_gains(k);
    if (link_.by_turns()) return send_by_turns(k, every_segment_, link_, *arrival_, &*drift_, context_);
    link_.send(k, every_segment_);
    if (strategy_ == Strategy::diffusion) mix(k);
  }
  void finish(Iteration k) override {
    if (strategy_ == Strategy::consensus) mix(k);
    correct();
  }
  void correct() override {
    if (drift_) drift_->correct(context_.replica.gradients.span());
  }
  Capabilities capabilities() override { return {.measures = this, .idle_work = this, .round_work = this}; }
  bool idle(Iteration k) override {
    start(k);
    mix(k);
    return false;
  }
  void answer(Iteration) override {}
  bool has_to_answer() const override { return false; }
  void drain() override {
    if (link_.by_turns()) return mix(last_);
    link_.take_arrived();
  }
  void state(Archive& archive) override {
    archive.value("last iteration", last_);
    link_.state(archive);
    if (drift_) drift_->state(archive, last_);
  }
  std::span<const std::uint8_t> events() const override { return every_segment_; }

 private:
  void say_gains(Iteration k) {
    for (std::size_t e = 0; drift_ && e < link_.edges().size(); ++e) link_.say_gains(e, drift_->gains(e, k));
  }
  void mix(Iteration k) {
    if (link_.by_turns()) return hear_by_turns(k, link_, *arrival_, &*drift_, context_);
    link_.receive(k);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const auto x = context_.replica.values.span();
    if (!drift_) return context_.device().mix_row(self_weight(), link_.edges(k), x);
    drift_->learn(step_along_differences_, differences(k));
    if (copies_are_current_)
      context_.device().mix_row(self_weight(), link_.edges(k), x);
    else
      context_.device().add_differences(step_along_differences_, link_.edges(k), x);
    link_.mixed();
  }
  float self_weight() const { return static_cast<float>(context_.neighbourhood.self_weight); }
  /// The product with W as differences: what i gains of j, j loses. Where copies are of this iteration, what the
  /// neighbours hold of this rank is x itself.
  std::vector<MixEdge> differences(Iteration k) {
    std::vector<MixEdge> edges(link_.edges(k).begin(), link_.edges(k).end());
    for (MixEdge& edge : edges) {
      edge.weight *= step_along_differences_;
      if (copies_are_current_) edge.ours = context_.replica.values.span();
    }
    return edges;
  }

  ExchangeContext context_;
  const Strategy strategy_;
  NeighbourLink link_;
  std::vector<std::uint8_t> every_segment_;
  bool copies_are_current_;
  float step_along_differences_;  // half of W where copies are an iteration old: whole, it would overshoot
  std::optional<DriftCorrection> drift_;
  std::unique_ptr<MixingRule> arrival_ = make_arrival();
  Iteration last_ = 0;
};

class DPsgdPlan final : public ExchangePlan {
 public:
  explicit DPsgdPlan(Config& exchange)
      : options_(read_link_options(exchange)),
        strategy_(read_strategy(exchange, options_)),
        correction_(read_correction(exchange.section("correction"))) {
    const bool current = options_.schedule == Schedule::lockstep && options_.delay == 0;
    options_.keep_own_copies = correction_.on() && !current;
    options_.by_turns = correction_.on() && options_.schedule == Schedule::asynchronous;
    options_.repeats = !options_.by_turns;
    require_turns(exchange, options_);
  }
  std::size_t packet_bound(const Layout& layout, int) const override {
    return sizeof(PacketHeader) + layout.count() * sizeof(SegmentHeader) + layout.size() * sizeof(float);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    ExchangeCost cost =
        link_cost(layout, topology, packet_bound(layout, topology.ranks()), {}, false, {.hosts = assumptions.hosts});
    cost.local = cost.local + correction_.work(layout, topology, 1.0);
    cost.waits = options_.schedule == Schedule::lockstep;
    cost.overlaps = strategy_ == Strategy::consensus;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    if (options_.by_turns) correction_.require_own_shares(context.topology);
    return std::make_unique<DPsgd>(context, options_, strategy_, correction_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    return link_bytes(layout, options_, {}, neighbours, packet_bound(layout, ranks)) + correction_.kept_bytes(layout);
  }
  Schedule schedule() const override { return options_.schedule; }
  bool moves_at_start() const override { return strategy_ == Strategy::diffusion || ExchangePlan::moves_at_start(); }
  std::optional<std::size_t> in_flight() const override { return options_.limit(); }
  bool runs_on(const Device&) const override { return true; }
  std::vector<std::string> warnings(const Topology& topology) const override {
    return correction_.warnings(topology, 1.0);
  }
  /// Lockstep ranks would have to agree on the iteration, and on a graph that changes a peer would be missing.
  bool survives_deaths() const override { return schedule() == Schedule::asynchronous; }
  ExchangeLaws laws() const override {
    const bool current = options_.schedule == Schedule::lockstep && options_.delay == 0;
    return {.along_graph = true,
            .follows_turns = current && !correction_.on(),
            .keeps_mass = current || correction_.on(),
            .measures_steps = correction_.on()};
  }

 private:
  LinkOptions options_;
  Strategy strategy_;
  CorrectionPlan correction_;
};

}  // namespace

ExchangeEntry dpsgd_exchange() {
  return {.name = "dpsgd",
          .summary = "every rank averages with its neighbours at every iteration: the baseline",
          .equation = "x_i <- sum_j w_ij x_j - eta g_i(x_i)",
          .cost = "per iteration and directed edge: segments messages, 4 n bytes of values; deg + 2 memory passes",
          .citation = "lian2017dpsgd, Algorithm 1",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<DPsgdPlan>(exchange);
          }};
}

}  // namespace hearsay

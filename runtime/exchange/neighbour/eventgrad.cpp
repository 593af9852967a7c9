// EventGraD: a segment is sent when its norm has moved far enough since it was last sent.
//   start:   for every segment s: if | ‖x_s‖ − ‖x_s at its last event‖ | ≥ threshold_s: send s to every neighbour
//            (with `trigger.measure: change`: if ‖x_s − x̂_s‖ ≥ threshold_s, x̂ being what neighbours hold of x)
//   finish:  x̂_j ← what has come;  x ← mix(x, x̂);  the optimizer then applies g(x_k)
// Asynchronously, under a rule that keeps the mean, this rank's own events move it in `start`: turns.hpp.
// ghosh2021eventgrad, Algorithm B; sparse variant: section 7, with Top-k of the change since the last send.
// Deviates from the paper in: copies start as the common initial model instead of zero; packets arrive whole, once
// and in order instead of overwriting each other; the sparse sender tracks exactly what each receiver holds, rounding
// of a quantiser included (then the change travels, not the value); the mixing rule, the trigger policy and the
// sparsifier are choices (`exchange.mixing`, `trigger`, `sparsify`); sparse, k = max(1, round(ρ·n)) values of a tensor
// travel, where the released code sends ⌈ρ·n⌉.
// Cost per iteration: one read pass for the norms; per event and directed edge one message: 4·n_s bytes, or 8·max(1,
// round(ρ·n_s)) sparse, less with other codecs and quantisers; memory: one block a neighbour, plus the own copies that
// mixing or selection need.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/eventgrad.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"
#include "runtime/exchange/neighbour/strategy.hpp"
#include "runtime/exchange/neighbour/turns.hpp"
#include "runtime/exchange/neighbour/value_step.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class EventGrad final : public Exchange, public Measures, public IdleWork, public RoundWork {
 public:
  EventGrad(const ExchangeContext& context, LinkOptions options, Strategy strategy, Sparsifier sparsifier,
            const std::optional<StepRule>& rule, std::shared_ptr<const MixingRule> mixing, const TriggerPlan& trigger,
            const CorrectionPlan& correction)
      : context_(context),
        strategy_(strategy),
        link_(context, options, std::move(sparsifier)),
        mixing_(std::move(mixing)),
        compute_norms_(context.device().norms(context.replica.layout)),
        norms_(initial_norms()),
        trigger_(trigger, context.replica.layout.lengths(), norms_, context.peers.rank()),
        fired_(norms_.size()),
        every_segment_(norms_.size(), std::uint8_t{1}) {
    if (trigger_.measure() == Measure::change) compute_changes_ = context.device().change_norms(context.replica.layout);
    if (trigger_.measure() == Measure::largest)
      compute_changes_ = context.device().largest_changes(context.replica.layout);
    if (rule) step_.emplace(*rule, context.steps, context.replica.layout, context.device());
    if (correction.on())
      drift_.emplace(correction.strength, context, link_.settling(), trigger.growth_of_silence().value_or(1.0));
    say_gains(0);  // what comes before this rank has begun is learnt from, too
  }

  void start(Iteration k) override {
    if (step_) link_.count_in(step_->length()), trigger_.dead_zone(step_->dead_zone());
    decide(k);
    last_ = k;
    say_gains(k);
    if (link_.by_turns()) return send_by_turns(k, fired_, link_, *mixing_, drift(), context_);
    link_.send(k, fired_);
    if (strategy_ == Strategy::diffusion) mix(k);
  }
  void finish(Iteration k) override {
    if (strategy_ == Strategy::consensus) mix(k);
    correct();
  }
  void correct() override {
    if (step_) step_->gradient(context_.replica.gradients.span());
    if (drift_) drift_->correct(context_.replica.gradients.span());
  }
  Capabilities capabilities() override { return {.measures = this, .idle_work = this, .round_work = this}; }
  bool idle(Iteration k) override {
    start(k);
    mix(k);
    return false;
  }
  void answer(Iteration k) override { answer_by_turns(k, link_, *mixing_, drift(), context_); }
  bool has_to_answer() const override { return link_.by_turns() && (link_.has_come() || link_.owes()); }
  void drain() override {
    if (link_.by_turns()) return mix(last_);
    link_.take_arrived();
  }
  void state(Archive& archive) override {
    archive.value("last iteration", last_);
    trigger_.state(archive);
    link_.state(archive);
    if (step_) step_->state(archive);
    if (drift_) drift_->state(archive, last_);
  }
  std::span<const double> thresholds() const override { return trigger_.thresholds(); }
  std::span<const double> norms() const override { return norms_; }
  std::span<const std::uint8_t> events() const override { return fired_; }

 private:
  DriftCorrection* drift() { return drift_ ? &*drift_ : nullptr; }
  void say_gains(Iteration k) {
    for (std::size_t e = 0; drift_ && e < link_.edges().size(); ++e) link_.say_gains(e, drift_->gains(e, k));
  }
  std::vector<double> initial_norms() {
    std::vector<double> norms(context_.replica.layout.count());
    compute_norms_(context_.replica.values.span(), norms);
    return norms;
  }
  /// How far x is from what the neighbours hold of it. Where one of them holds less than others, because its ring was
  /// full, what it misses is owed to it anyway: the others count. Single values are looked at edge by edge when they
  /// are sent, so any edge counts.
  void measure_changes() {
    if (!compute_changes_) return;
    changes_.assign(norms_.size(), 0.0);
    std::vector<double> of_one(norms_.size());
    for (std::size_t copy = 0; copy < link_.own_copies().size(); ++copy) {
      compute_changes_(context_.replica.values.span(), link_.own_copies()[copy].span(), of_one);
      for (std::size_t s = 0; s < of_one.size(); ++s)
        changes_[s] =
            copy == 0 ? of_one[s] : (step_ ? std::max(changes_[s], of_one[s]) : std::min(changes_[s], of_one[s]));
    }
  }
  void mix(Iteration k) {
    if (link_.by_turns()) return hear_by_turns(k, link_, *mixing_, drift(), context_);
    link_.receive(k);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const Mixing mixing{.layout = context_.replica.layout,
                        .self_weight = static_cast<float>(context_.neighbourhood.self_weight),
                        .edges = link_.edges(),
                        .segments = trigger_.local_steps_between_events() ? fired_ : every_segment_,
                        .device = context_.device(),
                        .by_events = drift_.has_value() || link_.copies_follow()};
    if (drift_) drift_->learn(link_.iteration_of_copies(k), mixing, *mixing_);
    mixing_->mix(mixing, context_.replica.values.span());
    if (link_.copies_follow()) mixing_->each_move(mixing, [&](const Move& move) { link_.follow(move); });
    link_.mixed(mixing.segments);
  }
  void decide(Iteration k) {
    const PhaseTimer timer(context_.ledger, Phase::trigger);
    compute_norms_(context_.replica.values.span(), norms_);
    measure_changes();
    for (SegmentId s = 0; s < fired_.size(); ++s) trigger_.learning_rate(s, context_.steps[s].learning_rate);
    trigger_.decide(k, norms_, changes_, fired_);
    for (SegmentId s = 0; s < fired_.size(); ++s) {
      if (fired_[s] != 0) context_.ledger.event(s);
    }
  }

  ExchangeContext context_;
  const Strategy strategy_;
  NeighbourLink link_;
  std::shared_ptr<const MixingRule> mixing_;
  Device::Norms compute_norms_;
  Device::ChangeNorms compute_changes_;  // none unless changes are the measure
  std::vector<double> norms_, changes_;
  TriggerEngine trigger_;
  std::vector<std::uint8_t> fired_;
  const std::vector<std::uint8_t> every_segment_;
  std::optional<DriftCorrection> drift_;
  std::optional<ValueStep> step_;  // where single values are events
  Iteration last_ = 0;
};

/// Every segment has its own events, so what travels of it is chosen within it.
Sparsifier read_segment_sparsifier(Config sparsify, const TriggerPlan& trigger) {
  return read_sparsifier(sparsify, {.selector = "dense",
                                    .per_segment = true,
                                    .scope_is_fixed = true,
                                    .quantiser = trigger.policy->by_values() ? "dead_zone" : "none"});
}

/// A rule that keeps the mean over ranks, unless the paper's is asked for: `stale` loses points of accuracy. With a
/// delay it is the one that has a γ for that.
std::shared_ptr<const MixingRule> read_mixing(Config mixing, Iteration delay) {
  const char* const usual = delay == 0 ? "arrival" : "difference";
  return chosen_entry(mixing_rules(), mixing, usual,
                      "how copies pull the replica; the default with delay: 1 is difference")
      .make(mixing);
}

TriggerPlan read_trigger(Config trigger) { return TriggerPlan(trigger); }

class EventGradPlan final : public ExchangePlan {
 public:
  EventGradPlan(Config& exchange, Config& root)
      : link_(read_link_options(exchange)),
        strategy_(read_strategy(exchange, link_)),
        mixing_(read_mixing(exchange.section("mixing"), link_.delay)),
        trigger_(read_trigger(root.section("trigger"))),
        sparsifier_(read_segment_sparsifier(root.section("sparsify"), trigger_)),
        correction_(read_correction(exchange.section("correction"))) {
    link_.edge_copies =
        exchange.choice(
            "copies", "shared", {"shared", "edge"},
            "lockstep: what neighbours hold of a rank is one copy for all of them; or each edge has its own, "
            "which follow the moves that both ends know") == "edge";
    link_.by_turns = link_.schedule == Schedule::asynchronous && mixing_->keeps_mean();
    link_.repeats = mixing_->repeats() && !link_.by_turns && !link_.edge_copies && !correction_.on();
    link_.keep_own_copies = mixing_->needs_own_copy() || trigger_.measure != Measure::norm;
    require_turns(exchange, link_);
    exchange.require(
        !link_.edge_copies || (link_.schedule == Schedule::lockstep && link_.delay == 0), "copies",
        "edge is for schedule: lockstep without delay: asynchronously edges have copies of their own anyway");
    exchange.require(
        !link_.edge_copies || mixing_->keeps_mean(), "copies",
        "edge needs a mixing rule whose moves both ends know: mixing: {name: arrival} or {name: difference}");
    exchange.require(
        link_.delay == 0 || mixing_->repeats(), "delay",
        "not with mixing: arrival, which moves once by an event: where segments fire often, moves by copies "
        "that are an iteration old overshoot. Take mixing: {name: difference, gamma: 0.5}");
    exchange.require(!correction_.on() || mixing_->keeps_mean(), "correction",
                     "only with a mixing rule that keeps the mean over ranks: mixing: {name: arrival} or {name: "
                     "difference}. Under mixing: stale what the ranks learn would not add up to 0");
    exchange.require(
        !trigger_.policy->by_values() || counts_in_steps(sparsifier_), "name",
        "with trigger: value_events, values are counted in one step: leave sparsify.quantiser at dead_zone, "
        "or take another trigger");
    exchange.require(link_.delay == 0 || !trigger_.local_steps_between_events(), "delay",
                     "not with trigger: periodic, which mixes only when it sends: its copies would be a period old");
  }

  std::size_t packet_bound(const Layout& layout, int) const override {
    for (const Segment& s : layout.segments())
      if (!travels_whole(sparsifier_, s.length)) require_positions(s.length, "parameter '" + s.name + "'");
    if (counts_in_steps(sparsifier_)) require_positions(layout.size(), "a model whose values are events");
    return hearsay::packet_bound(sparsifier_, layout, std::vector<std::uint8_t>(layout.count(), std::uint8_t{1}));
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    // Where values are events, the fraction is of them, and a packet is as long as they make it.
    CostAssumptions of_link = assumptions;
    double packet = static_cast<double>(packet_bound(layout, topology.ranks()));
    if (counts_in_steps(sparsifier_)) packet = packet_of_events(layout, std::exchange(of_link.event_fraction, 1.0));
    ExchangeCost cost = link_cost(layout, topology, static_cast<std::size_t>(packet), selection(layout),
                                  link_.keep_own_copies, of_link);
    cost.local = cost.local + correction_.work(layout, topology, assumptions.event_fraction);
    cost.waits = link_.schedule == Schedule::lockstep;
    cost.overlaps = strategy_ == Strategy::consensus;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    correction_.require_own_shares(context.topology);
    return std::make_unique<EventGrad>(context, link_, strategy_, sparsifier_.fresh(), sparsifier_.codec->step_rule(),
                                       mixing_, trigger_, correction_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    return link_bytes(layout, link_, sparsifier_, neighbours, packet_bound(layout, ranks)) +
           correction_.kept_bytes(layout);
  }
  Schedule schedule() const override { return link_.schedule; }
  bool moves_at_start() const override { return strategy_ == Strategy::diffusion || ExchangePlan::moves_at_start(); }
  std::optional<std::size_t> in_flight() const override { return link_.limit(); }
  /// Lockstep ranks would have to agree on the iteration, and on a graph that changes a peer would be missing.
  bool survives_deaths() const override { return schedule() == Schedule::asynchronous; }
  ExchangeLaws laws() const override {
    return {.along_graph = true,
            .keeps_mass = mixing_->keeps_mean(),
            .measures_steps = correction_.on() || trigger_.policy->measures_steps() || follows_steps()};
  }
  std::vector<std::string> warnings(const Topology& topology) const override {
    return correction_.warnings(topology, trigger_.growth_of_silence());
  }
  bool runs_on(const Device& device) const override { return device.selects_changes(sparsifier_); }

 private:
  bool follows_steps() const {
    const auto rule = sparsifier_.codec->step_rule();
    return rule && !rule->fixed;
  }
  /// The values x − x̂ are written into a block of their own and read twice, where error feedback reads its sum once.
  LocalWork selection(const Layout& layout) const {
    constexpr double words_of_difference = 3.0;
    LocalWork work;
    for (const Segment& s : layout.segments()) {
      if (travels_whole(sparsifier_, s.length)) continue;
      const std::size_t k = kept_count(sparsifier_.selector->density(), s.length);
      const auto length = static_cast<double>(s.length);
      work = work + selection_work(length, static_cast<double>(k), sparsifier_.selector->reads(k));
      work.moved_bytes += words_of_difference * sizeof(float) * length;
    }
    return work;
  }

  LinkOptions link_;
  Strategy strategy_;
  std::shared_ptr<const MixingRule> mixing_;
  TriggerPlan trigger_;
  Sparsifier sparsifier_;
  CorrectionPlan correction_;
};

}  // namespace

std::unique_ptr<ExchangePlan> eventgrad_plan(Config& exchange, Config& root) {
  return std::make_unique<EventGradPlan>(exchange, root);
}

ExchangeEntry eventgrad_exchange() {
  return {.name = "eventgrad",
          .summary = "a segment travels only when its trigger fires; whole, or Top-k sparsified",
          .equation = "if | |x_s| - |x_s at last event| | >= threshold_s: send s;  x <- mix(x, xhat) - eta g(x)",
          .cost = "one read pass for norms; per event and directed edge 4 n_s bytes, or 8 k_s sparse",
          .citation = "ghosh2021eventgrad, Algorithm B",
          .make = eventgrad_plan};
}

}  // namespace hearsay

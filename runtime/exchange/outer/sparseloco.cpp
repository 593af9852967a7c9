// SparseLoCo: DiLoCo whose outer differences travel sparse; what is not sent stays in a residual, which takes the place
// of the outer momentum.
//   local:   x_i moves by the loop's optimizer, H times from φ
//   round:   r_i ← β r_i + (φ − x_i);  v_i ← top_k(r_i), rounded;  r_i ← r_i − v_i;  φ ← φ − η (1/P) Σ_i v_i;  x_i ← φ
// sarfi2025sparseloco: the mean of the paper, over all ranks; error feedback, selection, codecs and the sum are topk's
// (shi2019gtopk). `mean: senders` is the deployed code's: at every position over the ranks that have sent a value, so
// up to P times as far.
// Deviates from the paper in: which k values travel is `sparsify`'s, by default the largest of the whole model; the
// paper's are `selector: {name: chunked, density: 0.0156, scope: per_segment}`. Unless `residual_decay` says otherwise
// the residual does not decay (β = 1; the paper has 0.95). With β = 1 and the paper's mean, what is applied and what is
// owed are together what the local steps have made. The deployed code's scaling of ranks whose values are longer than
// the median rank's is left out. With the quantiser `dead_zone` what is news of r_i takes the place of the largest k
// (sparsify/quantisers/sum_step.hpp).
// Cost per rank and round: topk's, ⌈log2 P⌉ messages and (P − 1) k entries, 1/H of that an iteration; memory: topk's
// and two blocks (φ, D), three with momentum.
#include <algorithm>

#include "runtime/exchange/global/parts/sparse_sgd.hpp"
#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {

namespace {

class SparseLoCo final : public Exchange {
 public:
  SparseLoCo(const ExchangeContext& context, const OuterOptions& options, const ExchangePlan& sum)
      : context_(context),
        options_(options),
        optimizer_(options, OuterOptimizer::Form::nesterov, context.replica.layout.size()),
        phi_(context.replica.layout.size()),
        difference_(context.replica.layout.size()),
        round_block_(context.replica.layout, phi_.span(), difference_.span()) {
    round_block_.device = context.replica.device;
    std::ranges::copy(context.replica.values.span(), phi_.span().begin());
    ExchangeContext of_round = context.with(round_block_);
    of_round.iterations_per_epoch = context.iterations_per_epoch.in_rounds(options.local_steps);
    of_round.steps = {};  // of the local optimizer
    sum_ = sum.build(of_round);
  }

  void start(Iteration) override {}
  void finish(Iteration) override {}
  void stepped(Iteration k) override {
    if (!options_.round_ends(k)) return;
    const auto phi = phi_.span(), d = difference_.span(), x = context_.replica.values.span();
    {
      const PhaseTimer timer(context_.ledger, Phase::mix);
      for (std::size_t i = 0; i < d.size(); ++i) d[i] = phi[i] - x[i];
    }
    require_finite_difference(context_.replica.layout, 0, d);
    sum_->start(round_);
    sum_->finish(round_);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    optimizer_.step(d, 0, phi);
    std::ranges::copy(phi, x.begin());
    sum_->stepped(round_++);
  }
  Capabilities capabilities() override {
    const Capabilities of_sum = sum_->capabilities();
    return {.measures = of_sum.measures, .residual = of_sum.residual};
  }
  void state(Archive& archive) override {
    archive.values("outer model", phi_.span());
    optimizer_.state(archive);
    archive.value("rounds", round_);
    if (round_ < 0) archive.refuse("rounds", "are negative");
    sum_->state(archive);
  }

 private:
  ExchangeContext context_;
  OuterOptions options_;
  OuterOptimizer optimizer_;
  FloatBlock phi_;
  FloatBlock difference_;  // D, and then the mean of what was sent
  Parameters round_block_;
  std::unique_ptr<Exchange> sum_;
  Iteration round_ = 0;
};

/// The sum that topk has, with what SparseLoCo adds to it.
std::unique_ptr<ExchangePlan> plan_sum(Config& exchange, Config& root) {
  SparseSgdSettings settings(exchange, root, of_sums);
  settings.feedback.decay =
      exchange.real("residual_decay", 1.0, Range::fraction_above_zero(),
                    "of what is owed, a round (β); below 1 some of it is lost; the paper has 0.95");
  const bool all = exchange.choice("mean", "all", {"all", "senders"},
                                   "over all ranks, which loses nothing, or at every position over the ranks that have "
                                   "sent a value (the deployed code)") == "all";
  return plan_sparse_sgd(std::move(settings),
                         [all] { return all ? gathered_collective() : mean_of_senders_collective(); });
}

class SparseLoCoPlan final : public ExchangePlan {
 public:
  SparseLoCoPlan(Config& exchange, Config& root)
      : options_(read_outer(exchange, {.local_steps = 30, .learning_rate = 1.0, .momentum = 0.0})),
        sum_(plan_sum(exchange, root)) {
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks end a round together",
                    "; the mean is of the same round of all ranks. Leave it at lockstep, or take gossip_outer");
  }
  std::size_t packet_bound(const Layout& layout, int ranks) const override { return sum_->packet_bound(layout, ranks); }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    return sum_->worst_case_bytes(layout, topology);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const std::optional<ExchangeCost> round = sum_->cost(layout, topology, assumptions);
    if (!round) return std::nullopt;
    constexpr double words = 8.0;  // D of φ and x; φ, D and x at the end
    return of_an_iteration(*round, options_.local_steps, words * static_cast<double>(layout.size()));
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<SparseLoCo>(context, options_, *sum_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    return sum_->kept_bytes(layout, neighbours, ranks) + 2 * layout.size() * sizeof(float) +
           OuterOptimizer::bytes(options_, layout.size());
  }
  Schedule schedule() const override { return Schedule::lockstep; }
  Iteration local_steps() const override { return options_.local_steps; }
  ExchangeLaws laws() const override { return {.replicas_agree = options_.local_steps == 1}; }

 private:
  OuterOptions options_;
  std::unique_ptr<ExchangePlan> sum_;
};

}  // namespace

ExchangeEntry sparseloco_exchange() {
  return {.name = "sparseloco",
          .summary = "DiLoCo whose outer differences travel sparse and rounded, with a residual in place of momentum",
          .equation =
              "every H iterations: r_i <- beta r_i + (phi - x_i);  v_i <- top_k(r_i);  r_i <- r_i - v_i;  phi <- phi - "
              "eta 1/P sum_i v_i;  x_i <- phi",
          .cost = "a round: ceil(log2 P) messages, (P - 1) k entries a rank; a residual and two blocks",
          .citation = "sarfi2025sparseloco; shi2019gtopk",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<SparseLoCoPlan>(exchange, root);
          }};
}

}  // namespace hearsay

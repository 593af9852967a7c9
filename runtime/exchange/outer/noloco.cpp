// NoLoCo: H local steps, then an outer step with momentum along the mean of a pair of ranks; pairs change from round to
// round, and no sum goes over all ranks.
//   local:   x_i moves by the loop's optimizer, H times from φ_i
//   round r: {i, j} by a permutation of all ranks that is drawn for r, the same on every rank
//            δ_i ← μ δ_i + β ((x_i − φ_i) + (x_j − φ_j))/2 + γ ((φ_i + φ_j)/2 − φ_i);  φ_i ← φ_i + δ_i;  x_i ← φ_i
// kolehmainen2025noloco, in the form of its published code. With β = γ the two terms are β ((x_i + x_j)/2 − φ_i): x_i
// is all that j must know, one block where that code sends two. The γ-term cancels within a pair, so the mean of the
// φ_i takes DiLoCo's outer step with heavy-ball momentum.
// Deviates from the paper in: groups are pairs; with an odd number of ranks the last one of the permutation goes alone,
// D = φ_i − x_i, without a γ-term; both halves travel as 32-bit floats, at once.
// Cost per rank and round: one message of 4n bytes (8n where β ≠ γ), 1/H of that an iteration; memory: 3 blocks (φ, δ,
// the partner's), one more where β ≠ γ.
#include <algorithm>
#include <numeric>
#include <string>

#include "base/random.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {
namespace {

struct NolocoSettings {
  OuterOptions outer{};    // β and μ
  double consensus = 0.7;  // γ
  std::uint64_t seed = 0;

  bool one_block() const { return consensus == outer.learning_rate; }
};

/// Whom `rank` meets in a round.
int partner_in(const NolocoSettings& settings, Iteration round, int rank, int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  Random random(stream_seed(settings.seed, "pairs of ranks", static_cast<std::uint64_t>(round)));
  random.shuffle(std::span(order));
  const auto position = static_cast<std::size_t>(std::ranges::find(order, rank) - order.begin());
  const std::size_t other = position ^ 1U;
  return other < order.size() ? order[other] : Peers::nobody;
}

class NoLoCo final : public Exchange {
 public:
  NoLoCo(const ExchangeContext& context, const NolocoSettings& settings)
      : context_(context),
        settings_(settings),
        optimizer_(settings.outer, OuterOptimizer::Form::heavy_ball, context.replica.layout.size()),
        phi_(context.replica.layout.size()),
        theirs_(context.replica.layout.size()),
        their_phi_(settings.one_block() ? 0 : context.replica.layout.size()) {
    std::ranges::copy(context_.replica.values.span(), phi_.span().begin());
  }

  void start(Iteration) override {}
  void finish(Iteration) override {}
  void stepped(Iteration k) override {
    if (!settings_.outer.round_ends(k)) return;
    const int partner = partner_in(settings_, round_++, context_.peers.rank(), context_.peers.size());
    require_finite_difference(context_.replica.layout, 0, context_.replica.values.span());
    if (partner != Peers::nobody) meet(partner);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    if (partner != Peers::nobody)
      difference_of_pair();
    else
      own_difference();
    optimizer_.step(theirs_.span(), 0, phi_.span());
    std::ranges::copy(phi_.span(), context_.replica.values.span().begin());
  }
  void state(Archive& archive) override {
    archive.values("outer model", phi_.span());
    optimizer_.state(archive);
    archive.value("rounds", round_);
    if (round_ < 0) archive.refuse("rounds", "are negative");
  }

 private:
  void meet(int partner) {
    for (SegmentId s = 0; s < context_.replica.layout.count(); ++s) context_.ledger.event(s);
    run_collective(context_, [&] {
      swap(partner, context_.replica.values.span(), theirs_.span());
      if (!settings_.one_block()) swap(partner, phi_.span(), their_phi_.span());
    });
  }
  void swap(int partner, std::span<const float> ours, std::span<float> theirs) {
    context_.peers.exchange(partner, {.bytes = std::as_bytes(ours), .payload_bytes = ours.size_bytes()}, partner,
                            std::as_writable_bytes(theirs));
  }
  /// theirs ← D. Sums of two: the same bits on both ranks.
  void difference_of_pair() {
    const auto x = context_.replica.values.span(), theirs = theirs_.span(), phi = phi_.span();
    if (settings_.one_block()) {
      for (std::size_t i = 0; i < x.size(); ++i) theirs[i] = phi[i] - 0.5F * (x[i] + theirs[i]);
      return;
    }
    const auto their_phi = their_phi_.span();
    const auto pull = static_cast<float>(settings_.consensus / settings_.outer.learning_rate);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float mean_phi = 0.5F * (phi[i] + their_phi[i]);
      theirs[i] = (mean_phi - 0.5F * (x[i] + theirs[i])) + pull * (phi[i] - mean_phi);
    }
  }
  void own_difference() {
    const auto x = context_.replica.values.span(), theirs = theirs_.span(), phi = phi_.span();
    for (std::size_t i = 0; i < x.size(); ++i) theirs[i] = phi[i] - x[i];
  }

  ExchangeContext context_;
  NolocoSettings settings_;
  OuterOptimizer optimizer_;
  FloatBlock phi_;     // where this rank's round began
  FloatBlock theirs_;  // the partner's x, and then D
  FloatBlock their_phi_;
  Iteration round_ = 0;
};

class NoLoCoPlan final : public CollectivePlan {
 public:
  explicit NoLoCoPlan(Config& exchange) {
    settings_.outer = read_outer(exchange, {.local_steps = 50, .learning_rate = 0.7, .momentum = 0.5});
    settings_.consensus = exchange.real("consensus", settings_.outer.learning_rate, Range::between(0.0, 100.0),
                                        "how far a pair's models go to their mean (γ): at 2 they swing apart; another "
                                        "number than outer.learning_rate's doubles the bytes");
    settings_.seed = static_cast<std::uint64_t>(
        exchange.integer("pairs_seed", 0, Range::at_least(0), "of the permutations that make pairs"));
    exchange.choice("schedule", "lockstep", {"lockstep"}, "a pair ends its round together",
                    "; both ranks of a pair must take the same mean. Leave it at lockstep, or take gossip_outer");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    return paired(topology) * blocks() * layout.size() * sizeof(float);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const auto n = static_cast<double>(layout.size()), sent = static_cast<double>(blocks());
    const bool pairs = topology.ranks() > 1;
    const CommunicationCost messages{.messages = pairs ? sent : 0.0, .words = pairs ? sent * n : 0.0};
    const double sent_bytes = static_cast<double>(worst_case_bytes(layout, topology)) / topology.ranks();
    ExchangeCost round = flat_cost(messages, sent_bytes, Pattern::crossing, assumptions);
    constexpr double words = 10.0;  // D of φ and two x; φ, m and D in the step; x ← φ
    round.message_bytes = sizeof(float) * n;
    return of_an_iteration(round, settings_.outer.local_steps, words * n);
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<NoLoCo>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int) const override {
    return (1 + blocks()) * layout.size() * sizeof(float) + OuterOptimizer::bytes(settings_.outer, layout.size());
  }
  Iteration local_steps() const override { return settings_.outer.local_steps; }
  ExchangeLaws laws() const override { return {.keeps_mass = settings_.outer.plain()}; }
  std::vector<std::string> warnings(const Topology&) const override {
    if (settings_.consensus < 2.0) return {};
    return {"exchange.consensus: from 2 on the models of pairs swing apart, ever further; take 0.7"};
  }

 private:
  std::size_t blocks() const { return settings_.one_block() ? 1 : 2; }
  static std::size_t paired(const Topology& topology) { return static_cast<std::size_t>(topology.ranks() / 2 * 2); }

  NolocoSettings settings_;
};

}  // namespace

ExchangeEntry noloco_exchange() {
  return {.name = "noloco",
          .summary = "H local steps, then an outer step along the mean of a pair; pairs change from round to round",
          .equation =
              "every H iterations, {i, j} drawn: d_i <- mu d_i + beta (mean of x - mean of phi) + gamma (mean of "
              "phi - phi_i);  phi_i <- phi_i + d_i;  x_i <- phi_i",
          .cost =
              "a round: one message of 4 n bytes a rank, two where gamma differs from outer.learning_rate; three "
              "blocks of memory",
          .citation = "kolehmainen2025noloco",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<NoLoCoPlan>(exchange);
          }};
}

}  // namespace hearsay

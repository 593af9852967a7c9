// FDA, federated dynamic averaging: ranks take local steps until their models have drifted apart, and average then.
//   every iteration: D_i = φ − x_i;  all ranks learn (‖D_i‖², ⟨ξ, D_i⟩) of each other
//   apart ≥ variance: (1/P) Σ ‖D_i‖² − ((1/P) Σ ⟨ξ, D_i⟩)² ≥ (1/P) Σ ‖D_i‖² − ‖(1/P) Σ D_i‖² = (1/P) Σ ‖x_i − x̄‖²
//   apart > Θ:        D ← (1/P) Σ_i D_i;  m ← μ m + D;  φ ← φ − η (D + μ m);  x_i ← φ;  ξ ← D / ‖D‖
// theologitis2025communication, LinearFDA: two numbers a rank bound the variance from above, so it never stays above Θ.
// η and μ, an outer optimizer on what the average says, are FDA-Opt's (theologitis2025fdaopt); 1 and 0 are FDA. With
// Θ = 0 it averages at every iteration: diloco with H = 1.
// Deviates from the papers in: ξ, the way that the average went last, is 0 before the first average, so that ‖D_i‖²
// alone counts; FDA-Opt's way to do without Θ is left out. Θ is a squared distance: it grows with the model and with
// the learning rate, and has to be found by trying.
// Cost per rank and iteration: ⌈log2 P⌉ messages of 16 bytes a rank; of an average 2 (P − 1) messages and
// 2 (P − 1)/P · 4n bytes; memory: 3 blocks (φ, D, ξ), 4 with momentum; time: a pass over 4 blocks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {
namespace {

struct FdaSettings {
  OuterOptions outer{};
  double threshold = 1.0;  // Θ
};

/// What a rank tells of itself.
struct Told {
  double square = 0.0, along = 0.0;  ///< ‖D‖², ⟨ξ, D⟩
};

class Fda final : public Exchange, public Measures {
 public:
  Fda(const ExchangeContext& context, const FdaSettings& settings)
      : context_(context),
        settings_(settings),
        optimizer_(settings.outer, OuterOptimizer::Form::nesterov, context.replica.layout.size()),
        phi_(context.replica.layout.size()),
        difference_(context.replica.layout.size()),
        direction_(context.replica.layout.size()) {
    std::ranges::copy(context_.replica.values.span(), phi_.span().begin());
  }

  void start(Iteration) override {}
  void finish(Iteration) override {}
  void stepped(Iteration) override {
    const double apart = bound_of_variance(measured());
    ++iterations_;
    if (apart > settings_.threshold) average();
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::vector<Share> shares() const override {
    return {{.name = "averaged_fraction",
             .part = static_cast<double>(averages_),
             .whole = static_cast<double>(iterations_)}};
  }
  void state(Archive& archive) override {
    archive.values("outer model", phi_.span());
    optimizer_.state(archive);
    archive.values("direction of the last average", direction_.span());
    archive.value("iterations", iterations_);
    archive.value("averages", averages_);
    if (averages_ < 0 || averages_ > iterations_) archive.refuse("averages", "are more than the iterations");
  }

 private:
  Told measured() {
    const PhaseTimer timer(context_.ledger, Phase::trigger);
    const auto phi = phi_.span(), x = context_.replica.values.span(), d = difference_.span(), xi = direction_.span();
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = phi[i] - x[i];
    require_finite_difference(context_.replica.layout, 0, d);
    Told told;
    for (std::size_t i = 0; i < d.size(); ++i) {
      told.square += static_cast<double>(d[i]) * static_cast<double>(d[i]);
      told.along += static_cast<double>(xi[i]) * static_cast<double>(d[i]);
    }
    return told;
  }
  /// The same number on every rank: added in the order of ranks.
  double bound_of_variance(const Told& own) {
    OwnedMessage message{.bytes = std::vector<std::byte>(sizeof own), .payload_bytes = sizeof own};
    std::memcpy(message.bytes.data(), &own, sizeof own);
    std::vector<OwnedMessage> all;
    run_collective(context_, [&] { all = all_gather(Group(context_.peers), std::move(message)); });
    Told sum;
    for (const OwnedMessage& of_rank : all) {
      Told told;
      if (of_rank.bytes.size() != sizeof told)
        throw CommunicationError("fda: " + std::to_string(of_rank.bytes.size()) + " bytes where a rank tells " +
                                 std::to_string(sizeof told) + ": do all ranks run the same program?");
      std::memcpy(&told, of_rank.bytes.data(), sizeof told);
      sum.square += told.square;
      sum.along += told.along;
    }
    const auto ranks = static_cast<double>(context_.peers.size());
    return sum.square / ranks - (sum.along / ranks) * (sum.along / ranks);
  }
  void average() {
    const auto phi = phi_.span(), x = context_.replica.values.span(), d = difference_.span(), xi = direction_.span();
    for (SegmentId s = 0; s < context_.replica.layout.count(); ++s) context_.ledger.event(s);
    run_collective(context_, [&] { ring_all_reduce(Group(context_.peers), d); });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    divide_by_ranks(context_, 0, d);
    double square = 0.0;
    for (const float value : d) square += static_cast<double>(value) * static_cast<double>(value);
    const double length = std::sqrt(square);
    for (std::size_t i = 0; i < d.size(); ++i) xi[i] = length > 0.0 ? static_cast<float>(d[i] / length) : 0.0F;
    optimizer_.step(d, 0, phi);
    std::ranges::copy(phi, x.begin());
    ++averages_;
  }

  ExchangeContext context_;
  FdaSettings settings_;
  OuterOptimizer optimizer_;
  FloatBlock phi_;         // the last average
  FloatBlock difference_;  // D_i, and then their mean
  FloatBlock direction_;   // ξ
  std::int64_t iterations_ = 0, averages_ = 0;
};

class FdaPlan final : public CollectivePlan {
 public:
  explicit FdaPlan(Config& exchange) {
    settings_.threshold = exchange.real(
        "threshold", 1.0, Range::at_least(0.0),
        "mean squared distance of the models from their mean at which they are averaged (Θ); it grows with the model "
        "and the learning rate, so try several");
    settings_.outer = read_outer_step(exchange, {.learning_rate = 1.0, .momentum = 0.0});
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks average together",
                    "; all ranks must decide alike. Leave it at lockstep, or take gossip_outer");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const auto p = static_cast<std::size_t>(topology.ranks());
    return (p - 1) * (2 * layout.size() * sizeof(float) + p * told_bytes);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const auto n = static_cast<double>(layout.size());
    const ExchangeCost average = allreduce_cost(topology.ranks(), layout.size(), 1, assumptions);
    const CommunicationCost told = gather_cost(topology.ranks(), told_bytes);
    constexpr double words_each = 8.0, words_of_average = 10.0;
    const double often = assumptions.event_fraction;
    const CommunicationCost ring = ring_cost(topology.ranks(), layout.size());
    ExchangeCost cost =
        flat_cost({.messages = told.messages + often * ring.messages, .words = told.words + often * ring.words},
                  (topology.ranks() - 1) * static_cast<double>(told_bytes) + often * average.sent_bytes,
                  Pattern::shifting, assumptions);
    cost.message_bytes = sizeof(float) * n / topology.ranks();
    cost.local =
        often * average.local + LocalWork{.moved_bytes = sizeof(float) * n * (words_each + often * words_of_average)};
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<Fda>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const std::size_t block = layout.size() * sizeof(float);
    return 3 * block + OuterOptimizer::bytes(settings_.outer, layout.size()) + block / static_cast<std::size_t>(ranks);
  }
  ExchangeLaws laws() const override { return {.keeps_mass = settings_.outer.plain()}; }

 private:
  static constexpr std::size_t told_bytes = sizeof(Told) + gather_header_bytes;

  FdaSettings settings_;
};

}  // namespace

ExchangeEntry fda_exchange() {
  return {.name = "fda",
          .summary = "local steps until the variance of the models is more than a threshold, then their average",
          .equation =
              "D_i = phi - x_i;  if mean |D_i|^2 - (mean <xi, D_i>)^2 > threshold: phi <- phi - mean D_i;  x_i <- phi",
          .cost =
              "ceil(log2 P) messages, 16 (P - 1) bytes a rank; of an average 2 (P - 1) messages, 2 (P - 1)/P 4 n "
              "bytes; three blocks of memory",
          .citation = "theologitis2025communication; theologitis2025fdaopt",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<FdaPlan>(exchange);
          }};
}

}  // namespace hearsay

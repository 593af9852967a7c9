// SPARTA: at every iteration a few coordinates, drawn at random, are averaged over all ranks.
//   M_k ← k positions of n, the same on every rank;  x_i ← (1/P) Σ_j x_j at M_k;  x_i ← x_i − η g_i
// beton2025sparta. Ranks draw from one seed, so no positions travel; the mean over ranks stays where it is. A
// coordinate is averaged every 1 / density iterations, on average. With density 1 it is D-PSGD on a complete graph.
// Deviates from the paper in: exactly k positions, where the paper draws each with a probability; x_k is averaged while
// g(x_k) is computed, as in dpsgd, and not after the step; what it does within DiLoCo is left out.
// Cost per rank and iteration: 2 (P − 1) messages, 2 (P − 1)/P · 4k bytes, while the gradient is computed; memory: 12
// bytes a position and a bit a value; time: k draws and their sorting.
#include <algorithm>

#include "base/random.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

struct SpartaSettings {
  double density = 0.0;
  std::uint64_t seed = 0;
};

class Sparta final : public Exchange {
 public:
  Sparta(const ExchangeContext& context, const SpartaSettings& settings)
      : context_(context), settings_(settings), queue_(context_) {}

  void start(Iteration) override {
    const auto x = context_.replica.values.span();
    {
      const PhaseTimer timer(context_.ledger, Phase::select);
      Random random(stream_seed(settings_.seed, "sparta", draws_++));
      draw_.draw(random, kept_count(settings_.density, x.size()), x.size(), positions_);
      values_.resize(positions_.size());
      for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = x[positions_[i]];
    }
    require_finite_at(context_.replica.layout, positions_, values_);
    count_events(context_, positions_);
    queue_.submit([this] { ring_all_reduce(Group(context_.peers), values_); });
  }
  void finish(Iteration) override {
    queue_.wait();
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const auto x = context_.replica.values.span();
    const auto ranks = static_cast<float>(context_.peers.size());
    for (float& value : values_) value /= ranks;
    require_finite_at(context_.replica.layout, positions_, values_);
    for (std::size_t i = 0; i < values_.size(); ++i) x[positions_[i]] = values_[i];
  }
  void state(Archive& archive) override { archive.value("draws so far", draws_); }

 private:
  /// Throws DivergenceError, naming the segment.
  static void require_finite_at(const Layout& layout, std::span<const std::uint32_t> positions,
                                std::span<const float> values) {
    try {
      require_finite(values);
    } catch (const DivergenceError& error) {
      const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
      const auto i = static_cast<std::size_t>(bad - values.begin());
      name_segment(layout, positions[i], values.subspan(i, 1), "value", error);
    }
  }

  ExchangeContext context_;
  SpartaSettings settings_;
  PositionDraw draw_;
  std::uint64_t draws_ = 0;
  std::vector<std::uint32_t> positions_;
  std::vector<float> values_;  // of x, and then their sum
  CollectiveQueue queue_;      // goes first: its jobs use what is above
};

class SpartaPlan final : public CollectivePlan {
 public:
  explicit SpartaPlan(Config& exchange) {
    settings_.density = exchange.real("density", 0.005, Range::fraction_above_zero(),
                                      "fraction of the coordinates that is averaged at an iteration; at least one is");
    settings_.seed = static_cast<std::uint64_t>(
        exchange.integer("seed", 0, Range::at_least(0), "of the draws, the same on all ranks"));
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks average the same iteration",
                    "; the mean is of the same iteration of all ranks. Leave it at lockstep, or take gossip_outer");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    return 2 * static_cast<std::size_t>(topology.ranks() - 1) * count(layout) * sizeof(float);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    ExchangeCost cost = allreduce_cost(topology.ranks(), count(layout), 1, assumptions);
    constexpr double cache_line_bytes = 64.0, visits = 2.0;  // what lies alone in one moves all of it
    cost.local.moved_bytes += visits * std::min(cache_line_bytes * static_cast<double>(count(layout)),
                                                sizeof(float) * static_cast<double>(layout.size()));
    cost.overlaps = true;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<Sparta>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int) const override {
    return count(layout) * (2 * sizeof(std::uint32_t) + sizeof(float)) + layout.size() / 8;
  }
  ExchangeLaws laws() const override { return {.keeps_mass = true}; }

 private:
  void require_fitting(const Layout& layout) const override { require_positions(layout.size(), "the model"); }
  std::size_t count(const Layout& layout) const { return kept_count(settings_.density, layout.size()); }

  SpartaSettings settings_;
};

}  // namespace

ExchangeEntry sparta_exchange() {
  return {.name = "sparta",
          .summary = "a few random coordinates of the models are averaged over all ranks at every iteration",
          .equation = "x_i <- 1/P sum_j x_j at k random positions, the same on every rank;  x_i <- x_i - eta g_i",
          .cost = "2 (P - 1) messages, 2 (P - 1)/P 4 k bytes a rank, no positions; nothing to keep",
          .citation = "beton2025sparta",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<SpartaPlan>(exchange);
          }};
}

}  // namespace hearsay

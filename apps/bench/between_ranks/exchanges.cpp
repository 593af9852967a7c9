#include "apps/bench/between_ranks/exchanges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "apps/bench/between_ranks/mass_balance.hpp"
#include "apps/bench/between_ranks/variants.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/timing.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"
#include "runtime/mpi/transport.hpp"

namespace hearsay {
namespace {

Layout even_layout(std::size_t values, int segments) {
  Layout layout;
  const auto count = static_cast<std::size_t>(segments);
  for (std::size_t s = 0; s < count; ++s) {
    const std::size_t length = values * (s + 1) / count - values * s / count;
    layout.append("segment" + std::to_string(s), {static_cast<std::int64_t>(length)});
  }
  return layout;
}

/// What goes along a graph runs on a ring, the rest needs everybody.
Topology topology_of(const ExchangePlan& plan, int ranks) {
  Config config = Config::from_text(plan.laws().along_graph ? "graph: {name: ring}\nweights: {name: metropolis}"
                                                            : "graph: {name: complete}\nweights: {name: metropolis}");
  return TopologyPlan(config).build(ranks);
}

/// Normal noise, new at every iteration: another window of one long block.
class Noise {
 public:
  Noise(std::uint64_t seed, int rank, std::size_t values)
      : random_(stream_seed(seed, "noise", static_cast<std::uint64_t>(rank))), block_(values + extra) {
    for (float& value : block_) value = static_cast<float>(random_.normal());
  }
  void fill(std::span<float> g) {
    const auto start = block_.begin() + static_cast<std::ptrdiff_t>(random_.below(extra));
    std::copy_n(start, g.size(), g.begin());
  }

 private:
  static constexpr std::size_t extra = 4096;
  Random random_;
  std::vector<float> block_;
};

/// One exchange on this rank: a session (runtime/training/session.cpp) without a model.
class Trial {
 public:
  Trial(const ExchangePlan& plan, const Layout& layout, const mpi::Communicator& world)
      : replica_(layout),
        world_([this] { member_.communication().progress(); }, world.handle()),
        member_(std::make_unique<mpi::Transport>(world.handle()),
                std::make_shared<const Topology>(topology_of(plan, world.size())), plan, replica_) {}

  /// Seconds of iteration k on the slowest rank.
  double iterate(Iteration k, Noise& noise) {
    noise.fill(replica_.gradients.span());
    member_.communication().run([this] { world_.barrier(); });
    std::array<double, 1> slowest{exchange(k) + step(k)};
    member_.communication().run([&] { world_.maximum(slowest); });
    return slowest[0];
  }
  /// The laws of what sums gradients, in the first two iterations: some algorithms begin with a dense one. Throws
  /// std::logic_error on rank 0.
  void check(const ExchangeVariant& variant, const ExchangeLaws& laws, std::uint64_t seed, Noise& noise) {
    const auto g = replica_.gradients.span();
    MassBalance balance(stream_seed(seed, "balance"));
    for (Iteration k = 0; k < 2; ++k) {
      noise.fill(g);
      for (float& value : g) value = std::nearbyint(1024.0F * value);
      balance.put_in(g);
      exchange(k);
      if (laws.sharded || world_.rank() == 0) balance.applied(g, world_.size());
      step(k);
    }
    std::vector<float> residual(g.size());
    add_residual(member_.exchange(), residual);
    balance.kept(residual);
    const std::array own{balance.statement(replica_.values.span())};
    std::vector<MassBalance::Statement> all;
    member_.communication().run([&] {
      for (const auto& bytes : world_.gather(std::as_bytes(std::span(own)))) {
        all.emplace_back();
        std::memcpy(&all.back(), bytes.data(), sizeof all.back());
      }
    });
    require_laws(variant.name, all);
  }
  /// Bytes sent until now, without control bytes, which formulas leave out; mean over ranks.
  double sent_bytes() {
    member_.communication().flush();
    std::array<double, 1> sum{};
    member_.communication().run([&] {
      const LedgerTotals totals = member_.ledger().totals();
      sum[0] = static_cast<double>(totals.bytes() - totals.control_bytes);
      world_.sum(sum);
    });
    return sum[0] / world_.size();
  }

 private:
  static constexpr float rate = 1e-3F;

  double exchange(Iteration k) {
    return seconds_taken([&] {
      member_.start(k);
      member_.learning_rate(rate);
      member_.finish(k);
    });
  }
  /// Seconds of what the exchange does after it.
  double step(Iteration k) {
    const auto g = replica_.gradients.span(), x = replica_.values.span();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * g[i];
    return seconds_taken([&] { member_.stepped(k); });
  }

  Parameters replica_;
  mpi::Communicator world_;  // serves the mailbox while it waits
  Participant member_;
};

constexpr int warmup = 20;  // iterations until residuals have found their size, and selectors their level

ExchangeTiming measure(const ExchangesOptions& options, const ExchangePlan& plan, const Layout& layout,
                       const mpi::Communicator& world, Noise& noise) {
  Trial trial(plan, layout, world);
  Iteration k = 0;
  // The same numbers on all ranks, so all of them stop at the same iteration.
  const auto iterate = [&](int most) {
    std::vector<double> seconds;
    for (double total = 0.0; std::ssize(seconds) < most && (seconds.empty() || total < options.seconds);
         total += seconds.back())
      seconds.push_back(trial.iterate(k++, noise));
    return seconds;
  };
  iterate(warmup);
  const double before = trial.sent_bytes();
  std::vector<double> seconds = iterate(options.iterations);
  ExchangeTiming timing;
  timing.iterations = static_cast<int>(seconds.size());
  timing.sent_bytes = (trial.sent_bytes() - before) / timing.iterations;
  timing.fastest_s = std::ranges::min(seconds);
  timing.slowest_s = std::ranges::max(seconds);
  timing.median_s = median(std::move(seconds));
  return timing;
}

struct Candidate {
  ExchangeVariant variant;
  std::unique_ptr<ExchangePlan> plan;
  ExchangeCost cost;
};

std::vector<Candidate> candidates(const ExchangesOptions& options, const Layout& layout, int ranks, int hosts) {
  std::vector<Candidate> all;
  for (const ExchangeVariant& variant : exchange_variants(options.density, true)) {
    if (variant.name.find(options.only) == std::string::npos) continue;
    auto plan = plan_variant(variant);
    const auto cost = plan->cost(layout, topology_of(*plan, ranks), {.hosts = hosts});
    if (cost && cost->waits) all.push_back({.variant = variant, .plan = std::move(plan), .cost = *cost});
  }
  return all;
}

}  // namespace

std::vector<ExchangeTiming> measure_exchanges(const ExchangesOptions& options, const Network& network,
                                              const std::function<void(const BenchStep&)>& begun) {
  mpi::Communicator world;
  const int hosts = 1 + std::ranges::max(mpi::Peers().nodes());
  const Layout layout = even_layout(options.values, options.segments);
  Noise noise(options.seed, world.rank(), options.values);
  const auto chosen = candidates(options, layout, world.size(), hosts);
  if (chosen.empty()) {
    ExchangesOptions every = options;
    every.only.clear();
    std::string known;
    for (const Candidate& candidate : candidates(every, layout, world.size(), hosts))
      known += (known.empty() ? "" : "; ") + candidate.variant.name;
    throw ConfigError("--only " + options.only + ": no algorithm has it in its name; known: " + known);
  }
  std::vector<ExchangeTiming> timings;
  for (const Candidate& candidate : chosen) {
    begun({.index = static_cast<int>(timings.size()) + 1,
           .count = static_cast<int>(chosen.size()),
           .what = candidate.variant.name});
    const ExchangeLaws laws = candidate.plan->laws();
    if (laws.mixes == ExchangeLaws::Mixes::gradients && laws.keeps_mass)
      Trial(*candidate.plan, layout, world).check(candidate.variant, laws, options.seed, noise);
    ExchangeTiming timing = measure(options, *candidate.plan, layout, world, noise);
    timing.algorithm = candidate.variant.name;
    timing.predicted_bytes = candidate.cost.sent_bytes;
    timing.communication_s = communication_s(candidate.cost, network);
    timing.own_work_s = candidate.cost.local.seconds(network);
    timings.push_back(std::move(timing));
  }
  return timings;
}

}  // namespace hearsay

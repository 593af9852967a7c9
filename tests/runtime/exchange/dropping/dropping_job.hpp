#pragma once
// Gradient dropping on every rank of a local job, with an optimizer of integers: x ← x − P·g, so that everything is
// exact.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "runtime/collectives/ring.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hearsay::test {

/// What one rank saw, iteration by iteration.
struct DroppingOutcome {
  std::vector<Vector> put_in, came_out;  ///< gradients before and after `finish`
  std::vector<Vector> found;             ///< own shard of x after `finish`: what the server thinks it is
  std::vector<Vector> moved;             ///< the same after the optimizer
  std::vector<Vector> x;                 ///< after `stepped`
  Vector residual;
};

/// One rank and its exchange, driven from outside.
class DroppingRank {
 public:
  explicit DroppingRank(LocalRank& rank)
      : rank_(rank), part_(part_of(rank.replica.layout.size(), rank.topology.ranks(), rank.rank())) {}

  /// One iteration with the gradient that `gradient` fills in.
  void iterate(const std::function<void(int rank, Iteration k, std::span<float> g)>& gradient) {
    const auto g = rank_.replica.gradients.span();
    rank_.member.start(k_);
    gradient(rank_.rank(), k_, g);
    outcome.put_in.emplace_back(g.begin(), g.end());
    rank_.member.finish(k_);
    step();
  }
  /// An iteration in which it has nothing to compute. Whether it had been pushed to.
  bool idle() {
    const bool serves = rank_.member.service().idle(k_);
    if (serves)
      step();
    else
      ++k_;
    return serves;
  }
  Vector residual() const {
    Vector r(rank_.replica.layout.size());
    add_residual(rank_.member.exchange(), r);
    return r;
  }
  const Part& part() const { return part_; }
  Vector own() const {
    const auto shard = part_.of(rank_.replica.values.span());
    return {shard.begin(), shard.end()};
  }

  DroppingOutcome outcome;

 private:
  void step() {
    const auto g = rank_.replica.gradients.span(), x = rank_.replica.values.span();
    outcome.came_out.emplace_back(g.begin(), g.end());
    outcome.found.push_back(own());
    // What weight decay does to all of x; on the own shard it would be meant.
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i < part_.begin || i >= part_.begin + part_.length) x[i] += 1000.0F;
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] -= static_cast<float>(times_ranks(g[i], static_cast<std::size_t>(rank_.topology.ranks())));
    outcome.moved.push_back(own());
    rank_.member.stepped(k_++);
    outcome.x.emplace_back(x.begin(), x.end());
  }

  LocalRank& rank_;
  Part part_;
  Iteration k_ = 0;
};

/// The same small integers everywhere at first.
inline Vector dropping_start(std::size_t n) {
  Vector x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 11) - 5.0F;
  return x;
}

inline void no_gradient(int, Iteration, std::span<float> g) { std::ranges::fill(g, 0.0F); }

/// x_0 − Σ over all that was ever put in: what x must be once nothing is owed any more.
inline Vector settled(const std::vector<DroppingOutcome>& ranks, std::size_t n) {
  Vector x = dropping_start(n);
  for (const DroppingOutcome& rank : ranks)
    for (const Vector& g : rank.put_in)
      for (std::size_t i = 0; i < n; ++i) x[i] -= g[i];
  return x;
}

/// The ranks of a job, their memories and their messages.
struct DroppingWorld {
  DroppingWorld(const std::string& yaml, int ranks, EngineKind engine = EngineKind::inline_engine,
                Layout of = reference::small_layout(), std::optional<std::uint64_t> delays = {},
                Iteration iterations_per_epoch = 1)
      : plan(yaml),
        layout(std::move(of)),
        topology(complete_topology(ranks)),
        initial(dropping_start(layout.size())),
        job{.topology = topology,
            .layout = layout,
            .initial = initial,
            .plan = *plan,
            .engine = engine,
            .delays = delays,
            .iterations_per_epoch = iterations_per_epoch},
        world(job) {}
  DroppingWorld(const DroppingWorld&) = delete;
  DroppingWorld& operator=(const DroppingWorld&) = delete;

  /// Runs `body` on a thread for every rank, and rethrows.
  void run(const std::function<void(LocalRank&)>& body) {
    {
      std::vector<std::jthread> threads;
      for (int r = 0; r < topology.ranks(); ++r) threads.emplace_back([&, r] { world.run(r, body); });
    }
    world.rethrow();
  }

  std::size_t packet_bound() const { return plan->packet_bound(layout, topology.ranks()); }

  const GlobalPlan plan;
  const Layout layout;
  const Topology topology;
  const Vector initial;
  const LocalJob job;
  LocalWorld world;
};

struct DroppingOptions {
  int ranks = 4;
  Iteration iterations = 5, quiet_iterations = 0;  ///< with and then without gradients
  EngineKind engine = EngineKind::inline_engine;
  std::function<void(int rank, Iteration k, std::span<float> g)> gradient = integer_gradient;
  Layout layout = reference::small_layout();
  std::optional<std::uint64_t> delays{};  ///< as LocalJob has them
};

inline std::vector<DroppingOutcome> run_dropping(const std::string& yaml, const DroppingOptions& options,
                                                 std::vector<Traffic>* traffic = nullptr) {
  DroppingWorld world(yaml, options.ranks, options.engine, options.layout, options.delays);
  std::vector<DroppingOutcome> outcomes(static_cast<std::size_t>(options.ranks));
  world.run([&](LocalRank& rank) {
    DroppingRank one(rank);
    for (Iteration k = 0; k < options.iterations; ++k) one.iterate(options.gradient);
    for (Iteration k = 0; k < options.quiet_iterations; ++k) one.iterate(no_gradient);
    one.outcome.residual = one.residual();
    outcomes[static_cast<std::size_t>(rank.rank())] = std::move(one.outcome);
  });
  if (traffic != nullptr)
    for (int r = 0; r < options.ranks; ++r) traffic->push_back(world.world.office().traffic(r));
  return outcomes;
}

}  // namespace hearsay::test

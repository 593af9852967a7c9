#include "apps/simulator/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"

namespace hearsay {
namespace {

void read_synthetic(Config& simulate, SimulationPlan& plan) {
  constexpr double most_values = 4294967295.0;  // positions are 32-bit
  plan.values = simulate.integer("values", 1000000, Range::between(1, most_values), "floats in a synthetic gradient");
  plan.segments = simulate.integer("segments", 16, Range::at_least(1), "parameter tensors, of equal length");
  plan.iterations = simulate.integer("iterations", 10, Range::at_least(1), "with synthetic gradients");
  plan.learning_rate =
      simulate.real("learning_rate", 0.01, Range::at_least(0.0), "step along synthetic gradients, which are N(0, 1)");
  simulate.require(plan.segments <= plan.values, "segments", "there cannot be more segments than values");
}

/// Instants are a Poisson process, and each hits one of those who live then, drawn evenly; the last one is spared.
std::vector<SimulatedFailure> drawn_failures(double per_hour, std::uint64_t seed, int ranks) {
  constexpr double hour_s = 3600.0;
  std::vector<SimulatedFailure> failures;
  std::vector<int> living(static_cast<std::size_t>(ranks));
  std::iota(living.begin(), living.end(), 0);
  Random random(stream_seed(seed, "storm"));
  for (double at_s = 0.0; per_hour > 0.0 && living.size() > 1;) {
    at_s -= std::log1p(-random.uniform()) * hour_s / per_hour;
    const auto victim = living.begin() + static_cast<std::ptrdiff_t>(random.below(living.size()));
    failures.push_back({.rank = *victim, .at_s = at_s});
    living.erase(victim);
  }
  return failures;
}

void read_failures(Config& simulate, SimulationPlan& plan, int ranks) {
  constexpr const char* no_return = "a rank that has failed does not come back in a simulation: leave it out";
  std::vector<bool> fails(static_cast<std::size_t>(ranks));
  for (Config failure : simulate.sections("failures", "who is silent from when on: rank, at_s since training began")) {
    const auto rank = failure.integer("rank", 0, Range::between(0.0, ranks - 1.0), "who fails");
    failure.require(failure.has("rank"), "rank", "say which rank fails");
    failure.require(!fails[static_cast<std::size_t>(rank)], "rank", "this rank fails twice");
    fails[static_cast<std::size_t>(rank)] = true;
    const double at_s = failure.real("at_s", 0.0, Range::at_least(0.0), "when, in seconds of training");
    const double back_at_s = failure.real("back_at_s", 0.0, Range::at_least(0.0), "0: never");
    failure.require(back_at_s == 0.0, "back_at_s", no_return);
    plan.failures.push_back({.rank = static_cast<int>(rank), .at_s = at_s});
  }
  simulate.require(std::ranges::find(fails, false) != fails.end(), "failures", "one rank at least must live");
  Config storm = simulate.section("storm");
  const double per_hour = storm.real("failures_per_hour", 0.0, Range::at_least(0.0),
                                     "of the job: at random instants, of ranks drawn from those who live; the last one "
                                     "is spared");
  const auto seed = storm.integer("seed", 1, Range::at_least(0.0), "another one is another storm");
  simulate.require(per_hour == 0.0 || plan.failures.empty(), "storm", "give either failures or a storm");
  if (plan.failures.empty()) plan.failures = drawn_failures(per_hour, static_cast<std::uint64_t>(seed), ranks);
}

}  // namespace

std::optional<double> SimulationPlan::fails_after_s(int rank) const {
  const auto found = std::ranges::find(failures, rank, &SimulatedFailure::rank);
  return found == failures.end() ? std::nullopt : std::optional(found->at_s);
}

void SimulationPlan::require_that_others_go_on(bool on_failure_continue) const {
  if (failures.empty() || on_failure_continue) return;
  throw ConfigError(
      "simulate: ranks that fail are the end of a job unless others go on without them: set train.on_failure: continue "
      "(asynchronous dpsgd, eventgrad or gossip_outer), or leave out simulate.failures and simulate.storm");
}

SimulationPlan read_simulation(Config& root, int ranks) {
  Config simulate = root.section("simulate");
  SimulationPlan plan;
  plan.gradients =
      simulate.choice("gradients", "model", {"model", "synthetic"},
                      "train the model, or draw gradients at random and simulate the exchange only") == "model"
          ? Gradients::model
          : Gradients::synthetic;
  plan.compute_s =
      simulate.real("compute_s", 0.1, Range::at_least(0.0), "seconds that a rank computes in one iteration");
  plan.jitter = simulate.real("jitter", 0.0, Range::fraction_below_one(),
                              "each iteration's compute time is drawn uniformly from compute_s (1 ± jitter)");
  plan.spread = simulate.real("spread", 0.0, Range::between(0.0, 2.0),
                              "each iteration's compute time is drawn from a log-normal distribution of this sigma, "
                              "whose mean is compute_s");
  simulate.require(plan.jitter == 0.0 || plan.spread == 0.0, "spread",
                   "give either jitter or spread: both say how long "
                   "an iteration takes");
  plan.slow_ranks = simulate.integers("slow_ranks", {}, Range::at_least(0), "stragglers");
  plan.slow_factor = simulate.real("slow_factor", 1.0, Range::above(0.0), "how many times as long stragglers compute");
  plan.scale = simulate.real("scale", 1.0, Range::at_least(1.0),
                             "all bandwidths are divided by it: a message then takes as long as one so many times as "
                             "long on the platform itself");
  read_failures(simulate, plan, ranks);
  if (plan.gradients == Gradients::synthetic) read_synthetic(simulate, plan);
  return plan;
}

std::function<double(Iteration k)> SimulationPlan::compute_time(std::uint64_t seed, int rank) const {
  const bool slow = std::ranges::find(slow_ranks, rank) != slow_ranks.end();
  return [mean = compute_s * (slow ? slow_factor : 1.0), jitter_ = jitter, sigma = spread,
          random = Random(stream_seed(seed, "compute time", static_cast<std::uint64_t>(rank)))](Iteration) mutable {
    if (sigma > 0.0) return mean * std::exp(sigma * random.normal() - 0.5 * sigma * sigma);
    return jitter_ > 0.0 ? mean * random.uniform(1.0 - jitter_, 1.0 + jitter_) : mean;
  };
}

Layout SimulationPlan::layout() const {
  Layout layout;
  for (std::int64_t s = 0; s < segments; ++s)
    layout.append("segment" + std::to_string(s), {values * (s + 1) / segments - values * s / segments});
  return layout;
}

}  // namespace hearsay

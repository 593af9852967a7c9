#include "apps/simulator/plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"

namespace hearsay {
namespace {

void read_synthetic(Config& simulate, SimulationPlan& plan) {
  constexpr double most_values = 4294967295.0;  // positions are 32-bit
  plan.values = simulate.integer("values", 1000000, Range::between(1, most_values), "floats in a synthetic gradient");
  plan.segments = simulate.integer("segments", 16, Range::at_least(1), "parameter tensors, of equal length");
  plan.iterations = simulate.integer("iterations", 10, Range::between(1, 1e12), "with synthetic gradients");
  plan.learning_rate =
      simulate.real("learning_rate", 0.01, Range::at_least(0.0), "step along synthetic gradients, which are N(0, 1)");
  simulate.require(plan.segments <= plan.values, "segments", "there cannot be more segments than values");
}

}  // namespace

void SimulationPlan::settle_failures(int processes, const OnFailure& on_failure) {
  if (on_failure.joins > 0)
    throw ConfigError(
        "simulate: nobody joins a simulated job; leave train.joins and train.vacant out, and let spares "
        "come back (train.spares)");
  if (!failures.any()) return;
  if (!on_failure.others_go_on)
    throw ConfigError(
        "simulate: ranks that fail are the end of a job unless others go on without them: set train.on_failure: "
        "continue (asynchronous dpsgd, eventgrad or gossip_outer), or leave out simulate.failures and simulate.storm");
  failures.settle(processes, on_failure.spares);
}

SimulationPlan read_simulation(Config& root, int processes) {
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
  plan.slow_ranks = simulate.integers("slow_ranks", {}, Range::between(0, processes - 1), "stragglers");
  plan.slow_factor = simulate.real("slow_factor", 1.0, Range::above(0.0), "how many times as long stragglers compute");
  plan.scale = simulate.real("scale", 1.0, Range::at_least(1.0),
                             "all bandwidths are divided by it: a message then takes as long as one so many times as "
                             "long on the platform itself");
  plan.failures = SimulatedFailures(simulate, processes);
  if (plan.gradients == Gradients::synthetic) read_synthetic(simulate, plan);
  return plan;
}

std::function<double(Iteration k)> SimulationPlan::compute_time(std::uint64_t seed, int process) const {
  const bool slow = std::ranges::find(slow_ranks, failures.rank_of(process)) != slow_ranks.end();
  return [mean = compute_s * (slow ? slow_factor : 1.0), jitter_ = jitter, sigma = spread,
          random = Random(stream_seed(seed, "compute time", static_cast<std::uint64_t>(process)))](Iteration) mutable {
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

#pragma once
// The section `simulate:` of a configuration.
#include <cstdint>
#include <functional>
#include <vector>

#include "apps/simulator/failures.hpp"
#include "base/config/config.hpp"
#include "runtime/failure/on_failure.hpp"
#include "runtime/replica/parameters.hpp"

namespace hearsay {

/// Where gradients come from: a model is trained, or they are drawn at random and only the exchange is real.
enum class Gradients { model, synthetic };

struct SimulationPlan {
  Gradients gradients = Gradients::synthetic;
  double compute_s = 0.0;                ///< of a rank, in one iteration
  double jitter = 0.0;                   ///< ... times a factor in [1 − jitter, 1 + jitter], drawn for each iteration
  double spread = 0.0;                   ///< ... or times a log-normal one of this sigma and mean 1
  std::vector<std::int64_t> slow_ranks;  ///< ... times `slow_factor` on these
  double slow_factor = 1.0;
  double scale = 1.0;  ///< bandwidths are divided by it
  SimulatedFailures failures{};
  // Synthetic gradients:
  std::int64_t values = 0, segments = 1, iterations = 0;
  double learning_rate = 0.0;

  /// Seconds that a process computes in iteration k; the same for the same seed.
  std::function<double(Iteration k)> compute_time(std::uint64_t seed, int process) const;
  /// To be called before `compute_time`. Throws ConfigError where ranks fail and others do not go on without them, and
  /// as SimulatedFailures::settle.
  void settle_failures(int processes, const OnFailure& on_failure);
  /// `segments` segments of equal length but for rounding.
  Layout layout() const;
};

/// Reads the simulation of so many processes.
SimulationPlan read_simulation(Config& root, int processes);

}  // namespace hearsay

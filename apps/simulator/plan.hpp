#pragma once
// The section `simulate:` of a configuration.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/config/config.hpp"
#include "runtime/replica/parameters.hpp"

namespace hearsay {

/// Where gradients come from: a model is trained, or they are drawn at random and only the exchange is real.
enum class Gradients { model, synthetic };

/// A rank that fails: from an instant of training on it is silent.
struct SimulatedFailure {
  int rank = 0;
  double at_s = 0.0;  ///< since training began
};

struct SimulationPlan {
  Gradients gradients = Gradients::synthetic;
  double compute_s = 0.0;                ///< of a rank, in one iteration
  double jitter = 0.0;                   ///< ... times a factor in [1 − jitter, 1 + jitter], drawn for each iteration
  double spread = 0.0;                   ///< ... or times a log-normal one of this sigma and mean 1
  std::vector<std::int64_t> slow_ranks;  ///< ... times `slow_factor` on these
  double slow_factor = 1.0;
  double scale = 1.0;  ///< bandwidths are divided by it
  std::vector<SimulatedFailure> failures;
  // Of synthetic gradients:
  std::int64_t values = 0, segments = 1, iterations = 0;
  double learning_rate = 0.0;

  /// Seconds that `rank` computes in iteration k; the same for the same seed.
  std::function<double(Iteration k)> compute_time(std::uint64_t seed, int rank) const;
  /// When `rank` fails, if it does.
  std::optional<double> fails_after_s(int rank) const;
  /// Throws ConfigError where ranks fail and others do not go on without them.
  void require_that_others_go_on(bool on_failure_continue) const;
  /// `segments` segments of equal length but for rounding.
  Layout layout() const;
};

/// Of so many ranks.
SimulationPlan read_simulation(Config& root, int ranks);

}  // namespace hearsay

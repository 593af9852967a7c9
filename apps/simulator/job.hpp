#pragma once
// What a simulated rank runs, chosen by the configuration.
#include <chrono>
#include <functional>
#include <string>

#include "apps/shared/options.hpp"
#include "apps/simulator/plan.hpp"
#include "runtime/mpi/environment.hpp"

namespace hearsay {

struct SimulatedJob {
  double scale = 1.0;                                ///< of the platform's bandwidths
  bool threads = true;                               ///< ranks need a thread each: LibTorch does
  std::function<void(mpi::Environment& mpi)> run{};  ///< one rank, collective; rank 0 prints the outcome
};

/// Reads the configuration and prepares the run folder. `command` goes into the manifest. Throws ConfigError,
/// DataError.
SimulatedJob read_job(const SimulateArguments& arguments, const std::string& command);

/// What happens to one process of a job. `began` is called when training begins: it fails then or later, or not at all.
class Fate {
 public:
  /// `failures` must outlive it.
  Fate(const SimulatedFailures& failures, int process) : failures_(failures), process_(process) {}
  void began();
  /// Whether this spare is there by now, to replace `rank`.
  bool may_take(int rank) const;

 private:
  const SimulatedFailures& failures_;
  int process_;
  std::chrono::nanoseconds start_{};
};

/// Reads a run that trains a model; the build without LibTorch has another one, which throws ConfigError.
SimulatedJob read_training_job(const Config& root, SimulationPlan simulation, int processes,
                               const std::string& command);

}  // namespace hearsay

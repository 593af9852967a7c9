#pragma once
// Exchange-only runs: random gradients instead of a model. No LibTorch.
#include <functional>
#include <memory>
#include <string>

#include "apps/simulator/plan.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/report/diary.hpp"

namespace hearsay {

/// A read and checked configuration; all ranks share it, since they share the process.
struct SyntheticRun {
  SimulationPlan simulation;
  std::uint64_t seed = 1;
  std::unique_ptr<ExchangePlan> exchange;
  std::shared_ptr<const Topology> topology;
  RunDescription description;  ///< its `run_id` is set when the run folder has been made
  OnFailure on_failure{};
};

/// Called on every rank; as in TrainOptions.
struct SyntheticHooks {
  std::function<void()> begun;
  std::function<void(const Summary*)> survived;
  std::function<bool(int rank)> may_take;
};

/// Reads `seed`, `topology:`, `exchange:`, `trigger:`, `sparsify:`, `report:`, and of `train:` what a failure is to the
/// others. Throws ConfigError.
SyntheticRun read_synthetic_run(Config root, SimulationPlan simulation, int processes, const std::string& command);

/// Runs the exchange and writes the run folder, which is there already. Collective over all ranks; the summary is
/// complete on rank 0.
Summary run_synthetic(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks);

}  // namespace hearsay

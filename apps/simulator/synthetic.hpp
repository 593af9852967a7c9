#pragma once
// Exchange-only runs: random gradients instead of a model. No LibTorch.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/simulator/plan.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {

/// A read and checked configuration for so many ranks; all of them share it, since they share the process.
struct SyntheticRun {
  SimulationPlan simulation;
  std::uint64_t seed = 1;
  std::string exchange_name;
  std::unique_ptr<ExchangePlan> exchange;
  std::shared_ptr<const Topology> topology;
  ReportOptions report;
  std::string config_yaml, command, run_id;
  std::chrono::nanoseconds failure_timeout{0};  ///< on_failure: continue; else 0
};

/// Called on every rank; as in TrainOptions.
struct SyntheticHooks {
  std::function<void()> begun;
  std::function<void(const Summary*)> survived;
};

/// Reads `seed`, `topology:`, `exchange:`, `trigger:`, `sparsify:`, `report:`, and of `train:` what a failure is to the
/// others. Throws ConfigError.
SyntheticRun read_synthetic_run(Config root, SimulationPlan simulation, int ranks, const std::string& command);

/// Runs the exchange and writes the run folder, which is there already. Collective over all ranks; the summary is
/// complete on rank 0.
Summary run_synthetic(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks);

}  // namespace hearsay

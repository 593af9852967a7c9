#pragma once
// The whole of a training run behind one call, for the `hearsay` program and for programs with models of their own:
// tests/package/stripes.cpp is one, in 40 lines. No LibTorch in this header.
#include <string>

#include "runtime/training/process/stop_signal.hpp"
#include "runtime/training/run_plan.hpp"
#include "runtime/training/train_options.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

/// True if the run in the plan's folder, whose name for itself rank 0 knows, has a complete checkpoint that all ranks
/// can read. Collective; changes nothing.
bool has_complete_checkpoint(const Job& job, const RunPlan& plan, std::string run_id);

/// Throws CommunicationError if the plan's `train.device` is not here. Not collective.
void require_device(const RunPlan& plan);

/// Trains, evaluates and writes the run folder. Collective over all ranks; the summary is complete on rank 0 and has
/// the run's own fields (ranks, iterations, parameters, …) elsewhere.
///
/// A file that cannot be written while the run goes on (a full disk, a folder that is gone) ends nothing: the summary
/// names it in `not_written`.
///
/// Throws ConfigError (ranks that read different configurations are named), DataError, CommunicationError,
/// DivergenceError (after this rank has written summary.json with status `diverged`), and Stopped after SIGINT or
/// SIGTERM: every rank that has received the signal has then saved its replica to model.rankNNNN.pt, and rank 0 has
/// written the reports with status `stopped`. After any of them the job must be ended with Job::abort: other ranks may
/// wait.
Summary train(const Job& job, const RunPlan& plan, const TrainOptions& options = {});
/// What processes that come later must have in common with those who are there (join_job).
std::string configuration_hash(const RunPlan& plan);

}  // namespace hearsay

#pragma once
// The whole of a training run behind one call, for the `hearsay` program and for programs with models of their own:
// tests/package/stripes.cpp is one, in 40 lines. No LibTorch in this header.
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/mpi/environment.hpp"
#include "runtime/training/process/stop_signal.hpp"
#include "runtime/training/run_plan.hpp"

namespace hearsay {

/// Told of progress on rank 0. Messages and megabytes are rank 0's own.
struct Progress {
  Iteration iteration, iterations;  ///< done, of so many
  double epoch, epochs;
  double loss;               ///< of the last batch
  double messages_fraction;  ///< of what D-PSGD would have sent until now; 0 without neighbours
  double megabytes_sent;     ///< 10^6 bytes of all kinds
  double iterations_per_second, seconds_left;
};

/// What a program adds to a run. Functions are called by the training loop, of rank 0 unless they
/// say otherwise.
struct TrainOptions {
  std::string command{};                                     ///< for the manifest; this process's if empty
  std::function<void(const Progress&)> progress{};           ///< at most four times a second, and at the end
  std::function<void(const EvaluationRecord&)> evaluated{};  ///< after every evaluation of the averaged model
  /// Seconds that pass after the gradient of iteration k has been computed, while communication goes on: in a
  /// simulation, where computing itself takes no time, what it is to take; elsewhere it makes a rank slower. Called on
  /// every rank.
  std::function<double(Iteration k)> compute_s{};
  /// What could not be written, on the rank that could not write it, when it is first known. Training goes on.
  std::function<void(const std::string&)> warned{};
  /// Of the run folder, where the caller has made it (rank 0); empty: `train` makes it.
  std::string run_id{};
  /// The run folder holds a run that goes on from its newest complete checkpoint.
  bool resume = false;
  /// Told on rank 0 what a resumed run begins with, in a sentence.
  std::function<void(const std::string&)> resumed{};
  /// On every rank, when training begins.
  std::function<void()> begun{};
  /// With train.on_failure: continue, in place of returning: everything is written, and the process is to be ended
  /// without MPI, which would wait for ranks that have died. On every rank; the summary on the one that reports, else
  /// null. Without it `train` returns as ever, and may hang if a rank has died.
  std::function<void(const Summary*)> survived{};
  /// Told on a spare that has taken the place of a dead rank, when it first mixes, in a sentence.
  std::function<void(const std::string&)> joined{};
  /// Of a spare: whether it may take the place of this rank by now. A simulation says when who is there.
  std::function<bool(int rank)> may_take = [](int) { return true; };
  bool shares_process = false;  ///< ranks are threads of one process, of which one runs at a time
};

/// Whether the run in the plan's folder, whose name for itself rank 0 knows, has a complete checkpoint that all ranks
/// can read. Collective; changes nothing.
bool has_complete_checkpoint(const RunPlan& plan, std::string run_id);

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
/// written the reports with status `stopped`. After any of them the job must be ended with Environment::abort: other
/// ranks may wait.
Summary train(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options = {});

}  // namespace hearsay

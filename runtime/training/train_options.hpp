#pragma once
// Options that a program adds to a training run, and the functions by which it is told of it.
#include <functional>
#include <memory>
#include <string>

#include "base/ids.hpp"
#include "runtime/report/report.hpp"

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

/// Additions of a program to a run. Functions are called by the training loop, of rank 0, or of the rank that has taken
/// over its duties, unless they say otherwise.
struct TrainOptions {
  std::string command{};                                     ///< for the manifest; this process's if empty
  std::function<void(const Progress&)> progress{};           ///< at most four times a second, and at the end
  std::function<void(const EvaluationRecord&)> evaluated{};  ///< after every evaluation of the averaged model
  /// Seconds that pass after the gradient of iteration k has been computed, while communication goes on: in a
  /// simulation, where computing itself takes no time, what it is to take; elsewhere it makes a rank slower. Called on
  /// every rank.
  std::function<double(Iteration k)> compute_s{};
  /// Told of a file that could not be written, on the rank that could not write it, when it is first known; and on the
  /// one that reports of ranks that drift apart. Training goes on.
  std::function<void(const std::string&)> warned{};
  /// The run folder, where the caller has made it: on rank 0, or wherever ranks share a process. Else `train` makes it.
  /// It is given back when the run has ended, in good order or among survivors.
  std::shared_ptr<RunFolder> folder{};
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
  /// True if a spare may replace this rank by now. A simulation says when who is there.
  std::function<bool(int rank)> may_take = [](int) { return true; };
  bool shares_process = false;  ///< ranks are threads of one process, of which one runs at a time
};

}  // namespace hearsay

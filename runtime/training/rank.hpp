#pragma once
// Everything that trains on one rank: data, model, optimizer, the participant that learns from the others, and what
// the rank says of itself. Private to sessions.
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "runtime/report/diary.hpp"
#include "runtime/training/failure/survivors.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/process/agreement.hpp"
#include "runtime/training/process/rank_generator.hpp"
#include "runtime/training/process/stop_signal.hpp"
#include "runtime/training/run_log.hpp"
#include "runtime/training/run_plan.hpp"
#include "runtime/training/train_options.hpp"
#include "runtime/transport/communicator.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

/// Made in the order of its members: each may use those before it. What a session does with them is in session.cpp,
/// when they are evaluated in evaluations.hpp, what is saved of them in checkpoints.hpp, how it ends in
/// endings.hpp.
struct TrainingRank {
  TrainingRank(const Job& job, const RunPlan& plan, const TrainOptions& options, std::string run_id);

  /// This process's place in the graph.
  int place() const { return participant.edges().rank(); }
  int spares() const { return plan.parts().on_failure.spares; }
  bool lockstep() const { return plan.parts().exchange->schedule() == Schedule::lockstep; }
  /// Lockstep ranks end after the same iteration. Where ranks are threads of a process all see the same signal, at
  /// times of their own.
  bool ends_together() const { return lockstep() && !options.shares_process; }
  /// Whether this rank writes what one rank writes.
  bool reports() const { return survivors.reports(); }
  /// Iterations of the job, over its ranks.
  double job_done() const { return participant.members().job_iterations(trainer->iterations_done()); }

  /// The processes that begin at a place: those that are no spares.
  std::vector<int> first_processes() const;
  /// Fills `trainer`; layer-wise exchanges are told of gradients from then on.
  void make_trainer();
  RunLog::Sources sources() { return {plan, options, participant, length, diary}; }

  const RunPlan& plan;
  const TrainOptions& options;
  const int process;  ///< of the job
  const std::string host;
  const std::string run_id;
  const StopSignal stop;
  const DataSet data;
  Model model;
  RankGenerator random;
  TrainingBatches batches;
  const RunLength length;
  std::atomic<bool> training{false};                 ///< a signal ends waits from then on
  const std::unique_ptr<Communicator> communicator;  ///< not to be used any more after that
  Agreement agreement;                               ///< lockstep ranks only
  const std::unique_ptr<Communicator> farewell;      ///< for ranks that a signal has stopped
  Diary diary;
  Participant participant;  ///< from now on communication belongs to its engine
  Survivors survivors;
  Evaluator evaluator;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Trainer> trainer;
  std::optional<RunLog> log;
  std::vector<Iteration> resumed_at{};
  /// What the job had done when this part of the run began.
  struct Before {
    Iteration iterations = 0;
    double seconds = 0.0;
  } before{};

 private:
  double compute();
  bool interrupted();
  std::chrono::nanoseconds failure_timeout() const;

  std::atomic<std::int64_t> signal_seen_ns_{0};
};

}  // namespace hearsay

#pragma once
// A session's parts on one rank: the run, the learner and the membership in the job. Each of its helpers
// (evaluations.hpp, checkpoints.hpp, endings.hpp) is given the parts that it uses. Private to sessions.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "runtime/failure/beginning.hpp"
#include "runtime/failure/survivors.hpp"
#include "runtime/report/diary.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/process/agreement.hpp"
#include "runtime/training/process/rank_generator.hpp"
#include "runtime/training/process/stop_signal.hpp"
#include "runtime/training/run_log.hpp"
#include "runtime/training/run_plan.hpp"
#include "runtime/training/train_options.hpp"
#include "runtime/training/trainer.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

/// A run as this process was told of it: the plan, the data, the length.
struct Run {
  Run(const Job& job, const RunPlan& plan, const TrainOptions& options, std::string id,
      std::optional<Beginning> told = {});

  /// Processes that begin without a vertex, there from the start or later.
  int spares() const { return plan.parts().on_failure.without_vertex(); }
  /// Others may come later: `late` lets them in, or has let this process in.
  bool others_may_come() const { return plan.parts().on_failure.joins > 0; }
  bool is_late() const { return told.has_value(); }
  bool lockstep() const { return plan.parts().exchange->schedule() == Schedule::lockstep; }
  /// Lockstep ranks end after the same iteration. Where ranks are threads of a process all see the same signal, at
  /// times of their own.
  bool ends_together() const { return lockstep() && !options.shares_process; }

  const RunPlan& plan;
  const TrainOptions& options;
  const int process;                    ///< its number in the job
  LateMembers* const late;              ///< null where nobody can come later
  const std::optional<Beginning> told;  ///< where this process has come later
  const std::string id;
  const StopSignal stop;
  const DataSet data;
  const RunLength length;
};

/// The model, and what trains it.
struct Learner {
  Learner(const Job& job, const Run& run);

  Model model;
  RankGenerator random;
  TrainingBatches batches;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Trainer> trainer;  ///< when the ranks have one model: set_trainer
};

/// The rank's record of the run.
struct RunRecord {
  Diary diary;
  std::optional<RunLog> log;
  std::vector<Iteration> resumed_at{};
  /// What the job had done when this part of the run began.
  struct Before {
    Iteration iterations = 0;
    double seconds = 0.0;
  } before{};
};

/// The other ranks, and this one's end of what they have in common. Made in the order of its members.
struct Membership {
  Membership(const Job& job, const Run& run, Parameters& replica);

  /// This process's vertex of the graph.
  int vertex() const { return participant.edges().rank(); }
  /// Whether this rank writes what one rank writes.
  bool reports() const { return survivors.reports(); }
  /// The processes that begin at a vertex: those that are no spares, and have not come later.
  std::vector<int> first_processes(const Run& run) const;
  void begin_log(const Run& run) {
    record.log.emplace(RunLog::Sources{run.plan, run.options, participant, run.length, record.diary});
  }

  std::atomic<bool> training{false};                 ///< a signal ends waits from then on
  const std::unique_ptr<Communicator> communicator;  ///< not to be used any more after that
  Agreement agreement;                               ///< lockstep ranks only
  const std::unique_ptr<Communicator> farewell;      ///< for ranks that a signal has stopped
  RunRecord record;         ///< outlives the participant, whose communication thread draws the time line
  Participant participant;  ///< from now on communication belongs to its engine
  Survivors survivors;

 private:
  bool interrupted(const Run& run);

  std::atomic<std::int64_t> signal_seen_ns_{0};
};

/// Fills `learner.trainer`; a layer-wise exchange is told of gradients from then on. All must outlive it.
void set_trainer(Learner& learner, const Run& run, Membership& membership);

}  // namespace hearsay

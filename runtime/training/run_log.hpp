#pragma once
// How far a rank of a session is, by its clock: for its diary, and for whoever watches. No LibTorch in this header.
#include <chrono>
#include <optional>

#include "runtime/exchange/participant.hpp"
#include "runtime/report/diary.hpp"
#include "runtime/training/run_plan.hpp"
#include "runtime/training/train_options.hpp"

namespace hearsay {

class RunLog {
 public:
  struct Sources {
    const RunPlan& plan;
    const TrainOptions& options;
    Participant& participant;
    RunLength length;
    Diary& diary;
  };
  explicit RunLog(const Sources& sources) : sources_(sources), start_(sources.participant.ledger().now()) {}

  /// Time, by the ledger's clock, counts from here; on top of that of the parts before.
  /// `since`: a reading of that clock, where this process has joined a run that goes on.
  void start_clock(std::optional<std::chrono::nanoseconds> since = std::nullopt);
  double seconds() const;                                    ///< since start_clock
  double seconds_before() const { return seconds_before_; }  ///< of the parts of the run before this one

  /// Iteration k of this rank is over, and `job_done` of all ranks; loss: of its batch. `reports`: this rank tells of
  /// the job's progress.
  void iteration(Iteration k, double job_done, double loss, bool reports);
  /// No iteration will follow.
  void last_iteration(Iteration k, double job_done);
  /// On the rank that reports: the averaged model after `job_done` iterations, at `time_s`.
  void evaluation(double job_done, double time_s, const std::vector<MetricValue>& metrics, double loss,
                  double consensus_distance);
  /// The fields that every rank knows; totals and times are zero. `writes`: this rank writes it.
  Summary summary(const std::string& status, double job_done, bool writes) const;
  /// The state of the clock and of the diary.
  void state(Archive& archive);

 private:
  Progression progression(Iteration done, double job_done) const;
  void report_progress(Iteration k, double job_done, double loss);

  Sources sources_;
  double seconds_before_ = 0.0;  // in the parts of the run before this one
  std::chrono::nanoseconds start_;
  std::chrono::steady_clock::time_point last_progress_{};  // by the user's clock, even where time is simulated
};

}  // namespace hearsay

#pragma once
// What a rank tells about its run while it goes on, and the summary of all ranks at its end. No LibTorch in this
// header.
#include <chrono>
#include <optional>

#include "runtime/mpi/communicator.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/totals.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {

/// One rank's diary: metrics.rankNNNN.jsonl, TensorBoard's event file and, on rank 0, progress. Nothing is
/// communicated.
class RunLog {
 public:
  struct Sources {
    const RunPlan& plan;
    const TrainOptions& options;
    const Topology& topology;
    const Layout& layout;
    const Ledger& ledger;
    RunLength length;
    int rank;
    int process;  ///< whose files these are: the rank, unless this process has taken the place of another
    const std::string& host;
    const std::string& run_id;
    const std::vector<Iteration>& resumed_at;  ///< iterations of this rank, so far
  };
  /// A new diary; or one that goes on, whose `state` is loaded before anything is recorded.
  enum class Begin { anew, resumed };
  explicit RunLog(const Sources& sources, Begin begin = Begin::anew);

  /// Time, by the ledger's clock, counts from here; on top of that of the parts before.
  /// `since`: a reading of that clock, where this process has joined a run that goes on.
  void start_clock(std::optional<std::chrono::nanoseconds> since = std::nullopt);
  double seconds() const;                                    ///< since start_clock
  double seconds_before() const { return seconds_before_; }  ///< of the parts of the run before this one

  /// Iteration k of this rank is over, and `job_done` of all ranks; loss: of its batch. What is recorded is the mean
  /// since the last record.
  void iteration(Iteration k, double job_done, double loss, const Exchange& exchange);
  /// No iteration will follow.
  void last_iteration(Iteration k, double job_done, const Exchange& exchange);
  /// Of the rank that reports. The averaged model after `job_done` iterations, at `time_s`.
  void evaluation(double job_done, double time_s, const std::vector<MetricValue>& metrics, double loss,
                  double consensus_distance);
  /// Flushes the diary; what of it could not be written, and why.
  std::vector<std::string> not_written();
  /// The fields that every rank knows; totals and times are zero.
  /// `reports`: this rank writes the summary of all.
  Summary summary(const std::string& status, double job_done, bool reports = false) const;
  /// How far the files of the rank are and what they do not have yet; loading cuts them there.
  void state(Archive& archive);
  /// For a rank that has no state to load: goes on behind the record of the run's name, if there is a file.
  void begin_behind_nothing();

 private:
  IterationRecord record(Iteration k, double job_done, double loss, const std::vector<Share>& shares) const;
  /// To each neighbour; nothing where everybody is one, which would be P − 1 numbers a record.
  std::vector<std::uint64_t> neighbour_bytes() const;
  void write(Iteration k, double job_done, const Exchange& exchange);
  void report_progress(Iteration k, double job_done, double loss);
  void warn_once();

  Sources sources_;
  std::uint64_t sends_;    // neighbours that an iteration sends to
  double loss_sum_ = 0.0;  // since the last record, over loss_count_ iterations
  std::uint64_t loss_count_ = 0;
  std::optional<MetricsWriter> metrics_;
  /// Where this process has taken the rank's place: bytes of the rank's file, behind which a resumed run goes on.
  std::optional<std::uint64_t> took_over_{};
  double seconds_before_ = 0.0;  // in the parts of the run before this one
  std::optional<EventFile> events_;
  bool warned_ = false;
  std::chrono::nanoseconds start_;
  std::chrono::steady_clock::time_point last_progress_{};  // by the user's clock, even where time is simulated
};

/// manifest.json and config.yaml; rank 0. `hosts`: one name a rank.
void write_start(const RunLog::Sources& sources, const std::vector<std::string>& hosts);

}  // namespace hearsay

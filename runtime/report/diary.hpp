#pragma once
// One rank's diary: all that a run leaves in its folder, for the program, Python and the simulator. No LibTorch.
//
//   Diary diary(run, plan, participant, host, warned);
//   diary.open();                               // this rank's metrics and event file
//   diary.begin(communicator);                  // manifest.json and config.yaml; collective
//   diary.start_clock();
//   diary.iteration(now, loss);                 // after every iteration: nothing is communicated
//   Summary summary = diary.summary("finished", now, reports);
//   diary.finish(summary, communicator, result, reports);  // tables and summary.json; collective
//
// A run is not given up because its report is: what cannot be written is warned of and stands in the summary.
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/report.hpp"
#include "runtime/report/totals.hpp"
#include "runtime/report/trace.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {

/// A run, as its folder describes it: known when it begins, and the same on every rank.
struct RunDescription {
  ReportOptions report{};
  std::string run_id{};
  std::string command{}, config_yaml{};
  std::map<std::string, std::string> versions{};  ///< but for those of MPI and the compiler, which the diary adds
  std::uint64_t seed = 0;
  Iteration iterations = 0;  ///< of the whole run; 0: not known
  std::string model, dataset, exchange;
};

/// How far a rank is, between two iterations.
struct Progression {
  Iteration iterations = 0;  ///< that this rank has done
  double job_iterations = 0.0;
  double epoch = 0.0;                                               ///< that the job has done
  double time_s = 0.0;                                              ///< since the first iteration
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  ///< of the last iteration
};

class Diary {
 public:
  /// Told of the first trouble of its kind, in words that follow "warning: ". Training goes on.
  using Warned = std::function<void(const std::string&)>;
  /// Opens nothing yet. `plan` must outlive it. `participant` is used from `open` on, and is to go first: its
  /// communication thread writes the time line. `host`: where the rank runs.
  Diary(RunDescription run, const ExchangePlan& plan, Participant& participant, std::string host, Warned warned = {});

  const RunDescription& run() const { return run_; }
  /// The run folder, which this process holds.
  void hold(std::shared_ptr<RunFolder> folder) { folder_ = std::move(folder); }
  /// This rank writes what one rank writes: the folder is its own from now on. May be called again.
  void take_over_folder() {
    if (folder_) folder_->take_over();
  }
  /// The run writes nothing any more.
  void give_back_folder() {
    if (folder_) folder_->give_back();
  }
  const std::filesystem::path& directory() const { return run_.report.directory; }

  /// New files of this rank. Throws DataError.
  void open();
  /// The files of a run that goes on: its `state` is loaded before anything is recorded, or `begin_anew` says that
  /// there is none.
  void reopen();
  void begin_anew();
  /// manifest.json and config.yaml, by rank 0. `resumed_at`: iterations of this rank, so far. Collective; calls MPI.
  void begin(Communicator& communicator, const std::vector<Iteration>& resumed_at = {});
  /// Training begins now: the wall time of TensorBoard's events counts from here.
  void start_clock();
  /// Draws the time line from now on, if the configuration asks for one.
  void watch();
  /// Nothing where no time line is drawn.
  Trace* trace() { return trace_ ? &*trace_ : nullptr; }

  /// An iteration is over. `loss`: of its batch; NaN: not known. What is recorded, every so many iterations and after
  /// the last one, is the mean since the last record.
  void iteration(const Progression& now, double loss, bool last = false);
  /// Records the iterations that no record tells of yet, if there are any.
  void record(const Progression& now);
  /// By the rank that reports.
  void evaluation(const EvaluationRecord& record);

  /// Writes a file of this rank's that may be lost without the run.
  void write(const std::function<void()>& file);
  void write_trace();
  /// `words`: a file, and why it could not be written; `warning`: what is said of the first of its kind.
  void note_unwritten(const std::string& words, const std::string& warning);
  /// Flushes the diary; what of it could not be written so far.
  Unwritten not_written();

  /// The fields that every rank knows; totals and times are zero. `writes`: this rank writes it.
  Summary summary(const std::string& status, const Progression& now, bool writes) const;
  /// Adds what only all ranks together know, and writes the tables, on rank 0 of `communicator`. `reports`: this rank
  /// writes summary.json, and that is rank 0 of the communicator. Collective; calls MPI.
  void finish(Summary& summary, Communicator& communicator, const RankResult& result, bool reports);
  /// A rank ends without the others: writes summary.json as it is.
  void end(Summary& summary);

  /// How far the files of the rank are and what they do not have yet; loading cuts them there.
  void state(Archive& archive);

 private:
  IterationRecord iteration_record(const Progression& now, double loss) const;
  /// To each neighbour; nothing where everybody is one, which would be P − 1 numbers a record.
  std::vector<std::uint64_t> neighbour_bytes() const;
  const Layout& layout() const { return participant_.replica().layout; }
  void write_summary_of(Summary& summary);
  void warn_of_lost_records();

  RunDescription run_;
  std::shared_ptr<RunFolder> folder_;
  const ExchangePlan& plan_;
  Participant& participant_;
  std::string host_;
  Warned warned_;
  std::uint64_t sends_ = 0;  // neighbours that an iteration sends to
  std::optional<MetricsWriter> metrics_;
  std::optional<EventFile> events_;
  std::optional<Trace> trace_;
  /// Where this process has taken the rank's place: bytes of the rank's file, after which a resumed run goes on.
  std::optional<std::uint64_t> took_over_;
  double loss_sum_ = 0.0;  // since the last record, over loss_count_ iterations whose loss is known
  std::uint64_t loss_count_ = 0, unrecorded_ = 0;
  bool lost_records_ = false;  // and said so
  std::vector<Iteration> resumed_at_;
  Unwritten unwritten_;
};

}  // namespace hearsay

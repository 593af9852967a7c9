#pragma once
// One rank's end of a Python program's job: a participant, and the run folder that it fills, which is that of the
// program `hearsay`. No Python here: python/core/module.cpp makes a class of it.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/state/archive.hpp"
#include "python/core/interruption.hpp"
#include "python/core/together.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/failure/beginning.hpp"
#include "runtime/failure/on_failure.hpp"
#include "runtime/report/diary.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::python {

/// A read and checked configuration: sections `exchange`, `topology`, `trigger`, `sparsify`, `report`, the key `seed`,
/// and `model` and `data`, of which only the names stand there.
struct JobPlan {
  /// Throws ConfigError, with file, line and column of everything that is wrong.
  JobPlan(Config root, const std::string& model_name, const std::string& data_name);

  std::uint64_t seed = 0;
  std::string model, dataset;
  std::string exchange_name;
  std::unique_ptr<ExchangePlan> exchange;
  OnFailure on_failure;
  ReportOptions report;
  std::string yaml;  ///< whole, with all defaults
  std::vector<std::string> notes;

  /// Ranks that step together: one that makes fewer steps leaves others waiting.
  bool in_step() const;
  /// The graph of so many ranks. Throws ConfigError, with the place in the configuration, where graph, weights or
  /// exchange do not fit them.
  std::shared_ptr<const Topology> topology(int ranks) const;

 private:
  std::unique_ptr<TopologyPlan> topology_;
  Config root_;
};

/// What the Python program says of itself.
struct Program {
  std::string command;
  std::map<std::string, std::string> versions;
  Iteration iterations_per_epoch = 1;
  Iteration iterations = 0;         ///< of the whole run; 0: not known
  std::vector<int> signals{};       ///< beside SIGINT and SIGTERM, after which it does not go on
  std::string buffers;              ///< of the model, what is not trained: the same on all ranks, a line each
  std::optional<Beginning> told{};  ///< where this process has come to a job that trains
};

/// Names and shapes, a line each.
std::string text_of(const Layout& layout);

/// What this rank has found out about the averaged model and its own, by one metric.
struct Score {
  Metric metric;
  double of_mean = 0.0, own = 0.0;
};

/// All functions are called by one thread, in the order of a step: start, gradient_ready…, finish, stepped. Those that
/// say "collective" are called by all ranks that live, between two steps, within a call that they have begun
/// (`together`).
class Member {
 public:
  /// Collective. Makes the run folder. All ranks get rank 0's x. Throws ConfigError if the ranks' configurations or
  /// layouts differ, or the number of ranks does not fit.
  /// `job` must outlive it; `meetings`: of the same ranks.
  Member(const Job& job, const std::shared_ptr<Meetings>& meetings, std::shared_ptr<const JobPlan> plan,
         std::shared_ptr<Parameters> replica, Program program);

  void start();
  /// In any order, once a step for every segment; those that are missing at `finish` count as ready then.
  void gradient_ready(SegmentId segment);
  /// `learning_rate`: of the step that follows, for the reports, if there is one number. What exchanges go by is
  /// `participant().steps`.
  void finish(std::optional<double> learning_rate);
  /// `loss` of the step's batch; NaN: not known.
  void stepped(double loss);

  Together& together() { return together_; }
  /// Who comes later.
  Newcomers& newcomers() { return newcomers_; }
  /// A process that has come later begins its loop here.
  void begin_at(Iteration steps);
  /// Why a wait was interrupted, if a rank that left is why.
  std::optional<std::string> departed() const { return place_.departed(); }
  /// Where ranks may die without the job (train.on_failure: continue).
  bool may_die() const { return together_.survivors().may_die(); }
  /// Whether this rank writes and logs what one rank does: rank 0, or the first that lives.
  bool reports() const { return together_.survivors().reports(); }
  /// Collective: `mean` becomes that of x over ranks, and so does `more`, as long on all of them (ConfigError). Returns
  /// the consensus distance, and keeps it for the summary.
  double average(std::span<double> more, std::vector<float>& mean);
  /// Collective: how the model does, in the order of `scores`, the same on all ranks. `examples`: that this
  /// rank has tested on, where each has its own; the averaged model is then worth the mean over all of them. Without it
  /// the first rank's word counts. Throws ConfigError on all ranks if their metrics differ or there are no examples,
  /// DivergenceError if the averaged model's loss is not finite.
  std::vector<RunQuality> evaluated(std::span<const Score> scores, std::optional<double> examples);
  /// Records what was evaluated last, which has taken this rank so long.
  void note_evaluation(double seconds);
  /// Collective: everything sent has arrived; writes the reports; summary.json's text on every rank. Training may go
  /// on.
  std::string summary();
  /// Collective: all that this rank's end of the job knows beside x. Asynchronous ranks wait until everything sent has
  /// arrived and is taken in, so x may move.
  RawBytes state();
  /// Collective, before the first step: goes on where `state` was asked. Throws DataError if the job is another one:
  /// another number of ranks, graph, exchange or model.
  void load_state(std::span<const std::byte> state);
  /// Ends this rank's part of a job that has not ended well: not collective, waits for nobody.
  void write_ending(const std::string& status, const std::string& message);
  /// Collective, the last call.
  void leave();

  int rank() const { return participant_.edges().rank(); }
  int ranks() const { return participant_.edges().topology().ranks(); }
  Iteration steps() const { return place_.done; }
  bool layer_wise() const { return participant_.exchange().capabilities().layer_wise; }
  const JobPlan& plan() const { return *plan_; }
  Participant& participant() { return participant_; }
  std::uint64_t replica_hash() const;
  /// Bytes that the core holds on this rank beside x and g, by its own account.
  std::size_t memory_bytes() const;
  /// What a user should know before training.
  std::vector<std::string> warnings() const;
  void iterations_per_epoch(Iteration iterations) { epoch_length_.set(iterations); }
  /// Forgets a signal that Python has dealt with.
  void forget_signal() { interruption_.forget(); }

 private:
  void require_same_job(const std::string& buffers);
  void make_run_folder(Communicator& before);
  RunDescription description(const Program& program) const;
  double seconds() const;
  Progression progression() const;
  double epoch(Iteration k) const { return epoch_length_.epoch(k); }
  void measure_consensus();
  void require_finite_loss() const;
  void require_same_metrics(std::span<const Score> scores, bool shared);
  void note_consensus(double squares);
  void evaluate_from(TimePoint start);
  void write_evaluation();
  void state(Archive& archive);
  void note_steps_of_all(Summary& summary);
  std::string shared_with_all(std::string text);
  ParticipantOptions participant_options();
  void tell_where_it_begins();
  int vertices() const { return plan_->on_failure.ranks(job_.ranks()); }
  /// Steps that this process has made itself.
  Iteration own_steps() const { return place_.done - began_at_; }

  std::shared_ptr<const JobPlan> plan_;
  std::shared_ptr<Parameters> replica_;
  EpochLength epoch_length_;  // the exchange's, too
  Interruption interruption_;
  const Job& job_;
  const std::optional<Beginning> told_;
  std::unique_ptr<Communicator> communicator_;
  LoopPlace place_;  // the participant's, too
  Newcomers newcomers_;
  std::shared_ptr<RunFolder> folder_;  // rank 0's, and where ranks may die everybody's
  std::string run_id_;
  std::optional<Diary> diary_;
  Participant participant_;  // from now on communication belongs to its engine
  Together together_;
  std::vector<std::uint8_t> ready_;  // segments whose gradient is
  std::size_t handed_on_ = 0;        // of them, from the last one
  TimePoint first_{}, phase_start_{}, last_{};
  std::chrono::nanoseconds charged_before_{};  // to other phases, when this one began
  double learning_rate_, consensus_distance_;
  std::vector<RunQuality> qualities_;  // of the last evaluation
  Iteration began_at_ = 0;             // steps of others before this process came
};

}  // namespace hearsay::python

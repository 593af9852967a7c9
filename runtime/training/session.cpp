#include "runtime/training/session.hpp"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/report/trace.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/snapshots.hpp"
#include "runtime/training/process/rank_generator.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/run_log.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

std::filesystem::path replica_file(const RunPlan& plan, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "model.rank%04d.pt", rank);
  return plan.report().directory / name;
}

/// Everything that trains on one rank: data, model, optimizer, and the participant that learns from the others.
class Session {
 public:
  Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options, std::string run_id);
  Summary run();

 private:
  void prepare();
  bool observe(Iteration k, double loss);
  bool may_go_on(Iteration done);
  double job_done() const { return participant_.job_iterations(trainer_->iterations_done()); }
  double all_done();
  void evaluate_at(double job_done);
  void evaluate_snapshots();
  void leave_snapshot(double job_iterations);
  void evaluate(double job_done, double time_s);
  Summary finish();
  [[noreturn]] void leave_stopped();
  void watch();
  RunLog::Sources sources() const;
  RankResult result() const;
  RankAccount account() const;
  void write(const std::function<void()>& file);
  void write_trace();
  void finish_report(Summary& summary);
  void collect_problems();
  double compute();

  const RunPlan& plan_;
  const TrainOptions& options_;
  const int rank_;
  const std::string host_;
  const std::string run_id_;
  const StopSignal stop_;
  const DataSet data_;
  Model model_;
  RankGenerator random_;
  TrainingBatches batches_;
  const RunLength length_;
  std::optional<Trace> trace_;
  std::atomic<bool> training_{false};  // a signal ends waits from then on
  mpi::Communicator communicator_;     // not to be used any more after that
  mpi::Communicator farewell_;         // for ranks that a signal has stopped
  Participant participant_;            // from now on MPI belongs to its engine
  Evaluator evaluator_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<RunLog> log_;
  std::optional<Snapshots> snapshots_;  // asynchronous ranks only
  bool snapshots_over_ = false;
  std::int64_t evaluations_ = 0;  // during training
  Evaluator::MeanModel mean_model_{};
  std::vector<std::string> not_written_{};
  RunTimes times_;
};

Session::Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options, std::string run_id)
    : plan_(plan),
      options_(options),
      rank_(environment.rank()),
      host_(environment.host()),
      run_id_(std::move(run_id)),
      data_(load_data(plan.parts())),
      model_(make_model(plan.parts(), data_, static_cast<std::uint64_t>(rank_), environment.rank_on_host())),
      random_(options.shares_process),
      batches_(make_batches(plan.parts(), data_, environment.ranks(), rank_)),
      length_(plan.length(data_.train->size(), environment.ranks())),
      communicator_([this] { participant_.serve(); }, environment.communicator()),
      farewell_([this] { participant_.progress(); }, environment.communicator()),
      participant_(environment.communicator(), std::make_shared<const Topology>(plan.topology(environment.ranks())),
                   *plan.parts().exchange, model_.replica(),
                   {.iterations_per_epoch = length_.iterations_per_epoch,
                    .step = plan.parts().optimizer->response(),
                    .interrupted = [this] { return training_ && stop_.received() != 0; }}),
      evaluator_(model_, test_set(data_), communicator_, participant_.engine(), participant_.ledger()),
      optimizer_(plan.parts().optimizer->build(model_)) {}

RunLog::Sources Session::sources() const {
  return {.plan = plan_,
          .options = options_,
          .topology = participant_.topology(),
          .layout = model_.replica().layout,
          .ledger = participant_.ledger(),
          .length = length_,
          .rank = rank_,
          .host = host_,
          .run_id = run_id_};
}

RankAccount Session::account() const {
  return {.ledger = participant_.ledger(),
          .neighbourhood = participant_.neighbourhood(),
          .layout = model_.replica().layout,
          .directory = plan_.report().directory,
          .not_written = not_written_};
}

/// A file of this rank's that may be lost without the run.
void Session::write(const std::function<void()>& file) {
  if (write_if_possible(not_written_, file) || !options_.warned) return;
  options_.warned(not_written_.back());
}

/// What the diary has lost.
void Session::collect_problems() {
  for (std::string& problem : log_->not_written()) not_written_.push_back(std::move(problem));
}

void Session::write_trace() {
  if (trace_) write([this] { trace_->write(plan_.report().directory); });
}

/// Rank 0 has the other ranks' words in the summary already.
void Session::finish_report(Summary& summary) {
  if (rank_ != 0) return;
  const auto before = not_written_.size();
  write([&] { write_summary(plan_.report().directory, summary); });
  summary.not_written.insert(summary.not_written.end(), not_written_.begin() + static_cast<std::ptrdiff_t>(before),
                             not_written_.end());
}

RankResult Session::result() const {
  return {.times = times_,
          .replica_hash = replica_hash(fetched(*model_.replica().device, model_.replica().values.span())),
          .shares = participant_.exchange().shares()};
}

/// All ranks start from the same model and together.
void Session::prepare() {
  participant_.engine().run([&] {
    broadcast_other_state(model_, communicator_);
    const auto hosts = gather_texts(communicator_, host_);
    if (rank_ == 0) write_start(sources(), hosts);
  });
  if (rank_ == 0 && !data_.vocabulary.empty())
    write(
        [this] { write_file(plan_.report().directory / "vocabulary.txt", "# " + run_id_ + "\n" + data_.vocabulary); });
  if (participant_.layer_wise()) {
    model_.on_gradient([this](SegmentId s) {
      if (trace_) trace_->gradient(s, participant_.ledger().now());
      random_.keep();
      participant_.gradient_ready(s);
      random_.use();
    });
  }
  trainer_ = std::make_unique<Trainer>(Trainer::Parts{.participant = participant_,
                                                      .loss_and_gradient = [this] { return compute(); },
                                                      .optimizer = *optimizer_,
                                                      .learning_rate = *plan_.parts().learning_rate,
                                                      .rank = rank_});
  log_.emplace(sources());
  if (plan_.parts().exchange->schedule() == Schedule::asynchronous)
    snapshots_.emplace(model_, plan_.report().directory, rank_, run_id_);
  participant_.engine().run([&] { communicator_.barrier(); });
}

/// Draws the time line from now on, if the configuration asks for one.
void Session::watch() {
  const ReportOptions& report = plan_.report();
  if (!report.trace) return;
  participant_.engine().run([&] {
    trace_.emplace(
        Trace::Rank{rank_, participant_.topology().ranks(), participant_.neighbourhood().neighbours, host_, run_id_},
        report.trace_iterations, participant_.ledger().now());
    participant_.ledger().watched_by(&*trace_);
  });
}

/// Forward and backward at x_k, and the time that it is to take.
double Session::compute() {
  random_.use();
  const Batch batch = batches_.next();
  const double loss = model_.loss_and_gradient(batch);
  random_.keep();
  if (!std::isfinite(loss)) require_finite_inputs(batch, rank_, trainer_->iterations_done());
  if (options_.compute_s) participant_.pass_time(options_.compute_s(trainer_->iterations_done()));
  return loss;
}

/// Between two iterations: records, progress, evaluation, stop. False ends training.
bool Session::observe(Iteration k, double loss) {
  if (trace_) trace_->iteration(k + 1);
  const double done = participant_.job_iterations(k + 1);
  log_->iteration(k, done, loss, participant_.exchange());
  if (plan_.parts().evaluate_every_epochs > 0) evaluate_at(done);
  return may_go_on(k + 1);
}

/// Whether neither a signal nor the clock ends training. Lockstep ranks stop in the same iteration: now and then they
/// ask each other.
bool Session::may_go_on(Iteration done) {
  constexpr Iteration between = 10;
  const double most_s = plan_.parts().most_seconds;
  if (stop_.received() != 0) return false;
  if (most_s == 0.0) return true;
  double late = log_->seconds() < most_s ? 0.0 : 1.0;
  if (!snapshots_) {
    if (done % between != 0) return true;
    participant_.flush();
    participant_.engine().run([&] { communicator_.maximum({&late, 1}); });
  }
  return late == 0.0;
}

/// The next evaluation that is due once the job is so far. What is due at the end is evaluated there.
void Session::evaluate_at(double job_done) {
  const Iteration every = plan_.parts().evaluate_every_epochs * length_.iterations_per_epoch;
  for (Iteration due = (evaluations_ + 1) * every; static_cast<double>(due) <= job_done && due < length_.iterations;
       due = (evaluations_ + 1) * every) {
    ++evaluations_;
    if (snapshots_)
      leave_snapshot(static_cast<double>(due));
    else
      evaluate(static_cast<double>(due), log_->seconds());
  }
}

/// What all ranks have done, over their number: exactly, when training is over. Collective.
double Session::all_done() {
  std::vector<double> sum{static_cast<double>(trainer_->iterations_done())};
  participant_.engine().run([&] { communicator_.sum(sum); });
  return sum[0] / participant_.topology().ranks();
}

/// What asynchronous ranks have left on their way; a rank that stopped early has left fewer. Leaves the model as it is.
void Session::evaluate_snapshots() {
  if (!snapshots_ || plan_.parts().evaluate_every_epochs == 0) return;
  const std::size_t last = snapshots_->taken().size();
  leave_snapshot(job_done());
  std::vector<double> common{snapshots_->taken().size() > last ? static_cast<double>(last) : 0.0};
  participant_.engine().run([&] { communicator_.minimum(common); });
  for (std::size_t i = 0; i < static_cast<std::size_t>(common[0]); ++i) {
    const Snapshots::Taken& taken = snapshots_->taken()[i];
    std::vector<double> when{taken.time_s};
    participant_.engine().run([&] { communicator_.maximum(when); });
    snapshots_->load(i);
    evaluate(taken.job_iterations, when[0]);
  }
  if (common[0] > 0.0) snapshots_->load(last);
}

/// Where one could not be written, none follows: the i-th is of the same time on all ranks.
void Session::leave_snapshot(double job_iterations) {
  if (snapshots_over_) return;
  snapshots_over_ = true;
  write([&] {
    snapshots_->leave({.job_iterations = job_iterations, .time_s = log_->seconds()});
    snapshots_over_ = false;
  });
}

void Session::evaluate(double job_done, double time_s) {
  participant_.flush();  // in a simulation nobody sends while a rank is in a collective
  mean_model_ = evaluator_.mean_model();
  log_->evaluation(job_done, time_s, mean_model_.metrics, mean_model_.loss, mean_model_.consensus_distance);
}

Summary Session::run() {
  prepare();
  training_ = true;
  log_->start_clock();
  watch();
  try {
    trainer_->run(
        length_, [this](Iteration k, double loss) { return observe(k, loss); },
        [this] { return may_go_on(trainer_->iterations_done()); });
    log_->last_iteration(trainer_->iterations_done() - 1, job_done(), participant_.exchange());
    times_ = {.wall_s = log_->seconds(), .evaluate_s = participant_.ledger().seconds(Phase::evaluate)};
    if (stop_.received() == 0) return finish();
  } catch (const WaitInterrupted&) {
    times_ = {.wall_s = log_->seconds(), .evaluate_s = participant_.ledger().seconds(Phase::evaluate)};
  } catch (const DivergenceError& error) {
    Summary summary = log_->summary("diverged", job_done());
    summary.message = error.what();
    write_trace();
    collect_problems();
    summary.not_written = not_written_;
    write([&] { write_summary(plan_.report().directory, summary); });
    throw;
  }
  leave_stopped();
}

Summary Session::finish() {
  participant_.settle();
  write_trace();
  evaluate_snapshots();
  const double done = all_done();
  evaluate(done, times_.wall_s);
  const Evaluator::Ranks ranks = evaluator_.every_rank();
  if (plan_.parts().save_model) {
    const std::filesystem::path file = plan_.report().directory / "model.pt";
    write([&] { evaluator_.save_mean_model(file, run_id_); });
  }
  collect_problems();
  Summary summary = log_->summary("finished", done);
  for (std::size_t i = 0; i < ranks.mean.size(); ++i)
    summary.take({.metric = ranks.mean[i].metric,
                  .mean_model = mean_model_.metrics[i].value,
                  .rank_worst = ranks.worst[i].value,
                  .rank_mean = ranks.mean[i].value});
  summary.loss_mean_model = mean_model_.loss;
  summary.consensus_distance = mean_model_.consensus_distance;
  participant_.engine().run([&] {
    complete_summary(summary, communicator_, account(), result());
    finish_report(summary);
    communicator_.barrier();
  });
  return summary;
}

/// The replica is saved before anything else: the launcher may kill the job a second after the signal.
void Session::leave_stopped() {
  constexpr double patience_s = 10.0;
  const Stopped stopped(stop_.received());
  write([this] { model_.save(replica_file(plan_, rank_), run_id_); });
  write_trace();
  collect_problems();
  Summary summary = log_->summary("stopped", job_done());
  summary.message = stopped.what();
  participant_.engine().run([&] {
    if (farewell_.barrier_within(patience_s))
      complete_summary(summary, farewell_, account(), result());
    else
      summary.message += "; not every rank has received the signal";
    finish_report(summary);
  });
  throw stopped;
}

/// Rank 0's, on every rank. Collective.
std::string common_run_id(mpi::Communicator& communicator, std::string of_rank_0) {
  of_rank_0.resize(run_id_length);
  communicator.broadcast(std::as_writable_bytes(std::span(of_rank_0)), 0);
  return of_rank_0;
}

}  // namespace

Summary train(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options) {
  std::optional<RunFolder> folder;  // of rank 0, if the caller has not made it
  std::string run_id = options.run_id;
  {
    mpi::Communicator communicator;
    require_same_run(communicator, plan.config_yaml());
    static_cast<void>(plan.topology(environment.ranks()));  // a P that does not fit leaves no run folder
    if (environment.rank() == 0 && run_id.empty()) run_id = folder.emplace(plan.report()).id();
    run_id = common_run_id(communicator, std::move(run_id));
  }
  use_threads(plan.parts().threads);
  Session session(environment, plan, options, run_id);
  return session.run();
}

}  // namespace hearsay

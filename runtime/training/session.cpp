#include "runtime/training/session.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/report/checkpoint.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/report/trace.hpp"
#include "runtime/training/killed_run.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/snapshots.hpp"
#include "runtime/training/process/agreement.hpp"
#include "runtime/training/process/rank_generator.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/resumption.hpp"
#include "runtime/training/run_log.hpp"
#include "runtime/training/set_up.hpp"
#include "runtime/training/survivors.hpp"

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
  void share_beginning();
  std::vector<int> first_processes() const;
  bool join();
  void tell_that_it_mixes();
  int spares() const { return plan_.parts().on_failure.spares; }
  /// This process's place in the graph.
  int place() const { return participant_.rank(); }
  bool observe(Iteration k, double loss);
  bool may_go_on(Iteration done);
  bool lockstep() const { return plan_.parts().exchange->schedule() == Schedule::lockstep; }
  /// Where ranks are threads of a process all see the same signal, at times of their own.
  bool ends_together() const { return lockstep() && !options_.shares_process; }
  bool interrupted();
  bool go_on_together(Iteration done);
  bool go_on_alone();
  bool checkpoint_is_due() const;
  void meet(bool for_checkpoint);
  void parts(const std::function<void(const char* name, const std::function<void(Archive&)>& state)>& tell);
  /// Whether all ranks have met before, or each writes for itself what its model is.
  enum class Having { met, met_nobody };
  void checkpoint(Having having = Having::met);
  void checkpoint_alone();
  std::uint64_t checkpoint_periods() const;
  void note_unwritten_checkpoints();
  void resume();
  void begin_with_mean(const Resumption& found);
  double job_done() const { return participant_.job_iterations(trainer_->iterations_done()); }
  double all_done();
  void evaluate_at(double job_done);
  void evaluate_snapshots();
  void evaluate_snapshot(std::size_t i);
  std::size_t snapshots_missed() const;
  void leave_snapshot(double job_iterations);
  void take_from_servers();
  void evaluate(double job_done, double time_s);
  Summary finish();
  Summary finish_alive();
  Summary leave_unused();
  void settle();
  bool reports() const { return survivors_.reports(); }
  std::chrono::nanoseconds failure_timeout() const;
  [[noreturn]] void leave_stopped();
  void settle_for_checkpoint();
  void watch();
  RunLog::Sources sources() const;
  RankResult result() const;
  RankAccount account() const;
  void write(const std::function<void()>& file);
  void write_trace();
  void note_times();
  void finish_report(Summary& summary);
  void collect_problems();
  double compute();

  const RunPlan& plan_;
  const TrainOptions& options_;
  const int rank_;  // of MPI
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
  std::atomic<std::int64_t> signal_seen_ns_{0};
  mpi::Communicator communicator_;  // not to be used any more after that
  Agreement agreement_;             // lockstep ranks only
  mpi::Communicator farewell_;      // for ranks that a signal has stopped
  Participant participant_;         // from now on MPI belongs to its engine
  Survivors survivors_;
  Evaluator evaluator_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<RunLog> log_;
  std::optional<Snapshots> snapshots_;  // asynchronous ranks only
  bool snapshots_over_ = false;
  std::optional<std::size_t> last_snapshot_{};  // the model at the end
  std::size_t snapshots_evaluated_ = 0;
  std::int64_t evaluations_ = 0;         // during training
  std::int64_t evaluations_before_ = 0;  // where there are spares: when this part of the run began
  std::int64_t joined_behind_ = 0;       // of a spare: when it took a place
  bool told_that_it_mixes_ = false;      // ... and has said so
  std::chrono::nanoseconds began_{};     // and a reading of the ledger's clock, as if it had been one part
  Evaluator::MeanModel mean_model_{};
  std::vector<std::string> not_written_{};
  CheckpointFolder checkpoint_folder_;
  CheckpointWriter checkpoint_writer_;
  std::uint64_t checkpoints_ = 0;  // written so far, those of the parts of the run before included
  double checkpoint_due_s_ = 0.0;  // the next by time
  Iteration checkpoint_due_ = 0;   // the next by iterations; 0: none
  /// Of ranks that write each for itself: checkpoints and seconds when this part of the run began, periods since then
  /// of the last that was written, periods of the job before.
  std::uint64_t checkpoints_before_ = 0, period_ = 0, periods_before_ = 0;
  Iteration begun_with_ = 0;  // iterations of the job before
  double began_s_ = 0.0;
  std::vector<Iteration> resumed_at_{};
  int signal_ = 0;              // that ranks have agreed to end at
  bool left_in_order_ = false;  // between two iterations
  bool together_ = false;       // all ranks have left training after the same iteration
  RunTimes times_;
};

Session::Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options, std::string run_id)
    : plan_(plan),
      options_(options),
      rank_(environment.rank()),
      host_(environment.host()),
      run_id_(std::move(run_id)),
      data_(load_data(plan.parts())),
      model_(started_model(plan.parts(), data_, rank_, environment.rank_on_host())),
      random_(options.shares_process),
      batches_(
          make_batches(plan.parts(), data_, plan.ranks(environment.ranks()), rank_ % plan.ranks(environment.ranks()))),
      length_(plan.length(data_.train->size(), plan.ranks(environment.ranks()))),
      communicator_(
          [this] {
            participant_.serve();
            survivors_.require_all_alive();
          },
          environment.communicator()),
      agreement_(communicator_),
      farewell_([this] { participant_.progress(); }, environment.communicator()),
      participant_(
          environment.communicator(), std::make_shared<const Topology>(plan.topology(environment.ranks())),
          *plan.parts().exchange, model_.replica(),
          {.iterations_per_epoch = length_.iterations_per_epoch,
           .step = plan.parts().optimizer->response(),
           .failure_timeout = failure_timeout(),
           .spares = spares(),
           .may_take = options.may_take,
           .stall_timeout = options.shares_process ? std::chrono::nanoseconds{0} : plan.parts().on_failure.ending(),
           .interrupted = [this] { return interrupted(); }}),
      survivors_(participant_, communicator_),
      evaluator_(model_, test_set(data_), communicator_, participant_.engine(), participant_.ledger()),
      optimizer_(plan.parts().optimizer->build(model_)),
      checkpoint_folder_(checkpoint_directory(plan.parts().checkpoint, plan.report().directory, run_id_), run_id_),
      checkpoint_writer_(checkpoint_folder_, plan.parts().checkpoint.keep) {}

/// Whether waits end. Lockstep ranks end training in the same iteration: until they are there, they go on; a rank that
/// waits for so long waits for somebody who does not come.
bool Session::interrupted() {
  constexpr std::int64_t patience_ns = 15'000'000'000;
  if (!training_ || stop_.received() == 0) return false;
  if (!ends_together()) return true;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t none = 0;
  // mpirun ends ranks that are left over with SIGTERM, and a second later for good: that may be all there is time for.
  if (signal_seen_ns_.compare_exchange_strong(none, now) && rank_ == 0) {
    std::vector<std::string> unwritten;
    write_if_possible(unwritten, [this] { leave_killed_summary(plan_.report().directory); });
  }
  return now - signal_seen_ns_ > patience_ns;
}

/// Alone, nobody dies.
std::chrono::nanoseconds Session::failure_timeout() const {
  return communicator_.size() > 1 ? plan_.parts().on_failure.going_on() : std::chrono::nanoseconds{0};
}

RunLog::Sources Session::sources() const {
  return {.plan = plan_,
          .options = options_,
          .topology = participant_.topology(),
          .layout = model_.replica().layout,
          .ledger = participant_.ledger(),
          .length = length_,
          .rank = place(),
          .process = rank_,
          .host = host_,
          .run_id = run_id_,
          .resumed_at = resumed_at_};
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

void Session::note_times() {
  times_ = {.wall_s = log_->seconds(),
            .evaluate_s = participant_.ledger().seconds(Phase::evaluate),
            .idle_s = trainer_->idle_seconds()};
}

/// Who reports has the other ranks' words in the summary already.
void Session::finish_report(Summary& summary) {
  if (!reports()) return;
  const auto before = not_written_.size();
  write([&] { write_summary(plan_.report().directory, summary); });
  summary.not_written.insert(summary.not_written.end(), not_written_.begin() + static_cast<std::ptrdiff_t>(before),
                             not_written_.end());
}

RankResult Session::result() const {
  return {.times = times_,
          .iterations = trainer_->iterations_done(),
          .replica_hash = replica_hash(fetched(*model_.replica().device, model_.replica().values.span())),
          .shares = participant_.exchange().shares(),
          .rank = place()};
}

/// All ranks start from the same model and together.
void Session::prepare() {
  participant_.engine().run([&] {
    broadcast_other_state(model_, communicator_);
    if (spares() == 0 || participant_.is_spare()) return;
    communicator_.keep(first_processes());
  });
  if (rank_ == 0 && !data_.vocabulary.empty())
    write(
        [this] { write_file(plan_.report().directory / "vocabulary.txt", "# " + run_id_ + "\n" + data_.vocabulary); });
  if (!participant_.is_spare() && participant_.layer_wise()) {
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
  if (participant_.is_spare()) return share_beginning();
  if (!lockstep()) snapshots_.emplace(model_, plan_.report().directory, rank_, run_id_);
  if (options_.resume) {
    resume();
    std::error_code gone;  // of the part before; another one comes
    if (rank_ == 0) std::filesystem::remove(plan_.report().directory / "summary.json", gone);
  } else {
    log_.emplace(sources());
  }
  participant_.engine().run([&] {
    const auto hosts = gather_texts(communicator_, host_);
    if (rank_ == 0) write_start(sources(), hosts);
    communicator_.barrier();
  });
  if (spares() > 0) share_beginning();
}

/// Those that are no spares.
std::vector<int> Session::first_processes() const {
  std::vector<int> first(static_cast<std::size_t>(participant_.topology().ranks()));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

/// What spares have to know of where the others begin, from rank 0. Collective over all processes.
void Session::share_beginning() {
  std::vector<std::int64_t> beginning{static_cast<std::int64_t>(checkpoints_), begun_with_, evaluations_};
  began_s_ = log_ ? log_->seconds_before() : 0.0;
  participant_.engine().run([&] {
    farewell_.broadcast(std::as_writable_bytes(std::span(beginning)), 0);
    farewell_.broadcast(std::as_writable_bytes(std::span(&began_s_, 1)), 0);
  });
  checkpoints_ = static_cast<std::uint64_t>(beginning[0]);
  begun_with_ = beginning[1];
  evaluations_ = evaluations_before_ = beginning[2];
  began_ = participant_.ledger().now() - std::chrono::nanoseconds(static_cast<std::int64_t>(began_s_ * 1e9));
}

/// Of a spare: false if it is not needed. Else it trains from now on in the place of a rank that has died, on that
/// rank's share, where the dead have stopped.
bool Session::join() {
  if (!participant_.take_over(*plan_.parts().exchange)) return false;
  const FailureDetector& failures = *participant_.failures();
  batches_ = make_batches(plan_.parts(), data_, participant_.topology().ranks(), place());
  for (int process = 0; process < participant_.topology().ranks() + spares(); ++process)
    if (failures.place_of(process) == place())
      batches_.skip(static_cast<std::int64_t>(participant_.batches_of(process)));
  snapshots_.emplace(model_, plan_.report().directory, rank_, run_id_);
  if (const Iteration every = plan_.parts().evaluate_every_epochs * length_.iterations_per_epoch; every > 0)
    evaluations_ = std::max(evaluations_, static_cast<std::int64_t>(job_done()) / every);
  joined_behind_ = evaluations_;
  log_.emplace(sources());
  log_->start_clock(began_);
  return true;
}

/// What a rank is made of: each part says its own state.
void Session::parts(const std::function<void(const char*, const std::function<void(Archive&)>&)>& tell) {
  tell("model", [this](Archive& archive) { model_.state(archive); });
  tell("optimizer", [this](Archive& archive) { optimizer_->state(archive); });
  tell("participant", [this](Archive& archive) { participant_.state(archive); });
  tell("log", [this](Archive& archive) { log_->state(archive); });
  tell("training", [this](Archive& archive) {
    constexpr std::size_t most_resumptions = 1'000'000;
    trainer_->state(archive);
    if (archive.loads()) batches_.skip(trainer_->iterations_done());
    batches_.state(archive);
    random_.state(archive, plan_.parts().device != "cpu");
    archive.value("evaluations", evaluations_);
    archive.list("iterations of resumptions", resumed_at_, most_resumptions);
    if (snapshots_) snapshots_->state(archive);
  });
}

/// Of this rank, between two iterations. Its bytes are gathered here and written while training goes on. Asynchronous
/// ranks have settled; else what a rank remembers of others would not fit what they remember of it, and is left out.
void Session::checkpoint(Having having) {
  RawBytes& bytes = checkpoint_writer_.buffer();
  bytes.reserve(checkpoint_bytes(plan_.parts(), model_.replica().layout, participant_.neighbourhood().neighbours.size(),
                                 participant_.topology().ranks()));
  Archive archive = Archive::saving(bytes);
  const bool settled = having == Having::met;
  parts([&](const std::string_view name, const std::function<void(Archive&)>& state) {
    if (settled || name == "model" || name == "log") archive.part(name.data(), state);
  });
  archive.part("residual", [this](Archive& part) {
    std::vector<float> owed(model_.replica().layout.size());
    participant_.exchange().add_residual(owed);
    if (std::ranges::all_of(owed, [](float value) { return value == 0.0F; })) owed.clear();
    part.list("residual", owed, owed.size());
  });
  checkpoint_writer_.write({.number = ++checkpoints_,
                            .iteration = trainer_->iterations_done(),
                            .epoch = length_.epoch(job_done()),
                            .rank = place(),
                            .ranks = participant_.topology().ranks(),
                            .settled = settled,
                            .lost = survivors_.missing()},
                           stop_.received() == 0 && signal_ == 0);
  note_unwritten_checkpoints();
}

void Session::note_unwritten_checkpoints() {
  for (const std::string& problem : checkpoint_writer_.problems()) {
    const std::string words = "a checkpoint: " + problem;
    if (std::ranges::find(not_written_, words) != not_written_.end()) continue;
    not_written_.push_back(words);
    if (options_.warned) options_.warned("a checkpoint could not be written: " + problem + "; training goes on");
  }
}

/// From the newest complete checkpoint that all ranks can read. What went before was killed if it has left no summary;
/// that is what stays to be read where there is nothing to go on from.
void Session::resume() {
  if (rank_ == 0) write([this] { leave_killed_summary(plan_.report().directory); });
  const Resumption found = find_checkpoint(participant_.engine(), communicator_, checkpoint_folder_);
  begun_with_ = static_cast<Iteration>(std::llround(found.epoch * static_cast<double>(length_.iterations_per_epoch)));
  if (found.ranks != participant_.topology().ranks() || !found.settled) return begin_with_mean(found);
  const std::string file = checkpoint_folder_.state_file(found.number, rank_).string();
  log_.emplace(sources(), RunLog::Begin::resumed);
  parts([&](const char* name, const std::function<void(Archive&)>& state) {
    load_part(found.states.front(), name, file, state);
  });
  checkpoints_ = found.number;
  resumed_at_.push_back(trainer_->iterations_done());
  if (rank_ == 0 && options_.resumed)
    options_.resumed("goes on from checkpoint " + std::to_string(found.number) + ", iteration " +
                     std::to_string(trainer_->iterations_done()));
}

/// On another number of ranks, or where ranks wrote each for itself. What a rank alone remembers has no place any more.
void Session::begin_with_mean(const Resumption& found) {
  const std::vector<float> owed = load_mean(found, participant_.engine(), communicator_, checkpoint_folder_, model_);
  const Iteration done = begun_with_;
  participant_.begin_at(done, *plan_.parts().exchange, owed);
  trainer_->begin_at(done);
  batches_.skip(done);
  log_.emplace(sources(), RunLog::Begin::resumed);
  if (!found.of.empty() && found.of.front() == rank_)
    load_part(found.states.front(), "log", checkpoint_folder_.state_file(found.number, rank_).string(),
              [this](Archive& archive) { log_->state(archive); });
  else
    log_->begin_behind_nothing();
  if (plan_.parts().evaluate_every_epochs > 0)
    evaluations_ = done / (plan_.parts().evaluate_every_epochs * length_.iterations_per_epoch);
  checkpoints_ = found.number;
  resumed_at_.push_back(done);
  if (rank_ == 0 && options_.resumed)
    options_.resumed("checkpoint " + std::to_string(found.number) + " is of " + std::to_string(found.living) +
                     (found.settled ? " ranks, and there are " + std::to_string(participant_.topology().ranks())
                                    : " ranks that wrote each for itself") +
                     ": all ranks start from the mean of their models at iteration " + std::to_string(done) +
                     (owed.empty() ? "" : ", residuals are handed out") +
                     "; moments, triggers and corrections begin anew, and counts begin at 0");
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
  if (participant_.mixes_since_s() && !std::exchange(told_that_it_mixes_, true)) tell_that_it_mixes();
  return may_go_on(k + 1);
}

/// Of a spare that has taken a place.
void Session::tell_that_it_mixes() {
  if (!options_.joined) return;
  const double now = std::chrono::duration<double>(participant_.ledger().since_start()).count();
  char text[160];
  std::snprintf(text, sizeof text,
                "takes the place of rank %d, after %.2f s, in iteration %.0f of the job; it mixes since %.2f s",
                place(), log_->seconds() - (now - participant_.joined_at_s()), participant_.job_iterations(0),
                log_->seconds() - (now - *participant_.mixes_since_s()));
  options_.joined(text);
}

/// Between two iterations: whether neither a signal nor the clock ends training. Writes a checkpoint that is due.
bool Session::may_go_on(Iteration done) {
  note_unwritten_checkpoints();
  return lockstep() ? go_on_together(done) : go_on_alone();
}

/// Lockstep ranks stop in the same iteration, and write checkpoints in the same one.
bool Session::go_on_together(Iteration done) {
  const CheckpointOptions& options = plan_.parts().checkpoint;
  const double most_s = plan_.parts().most_seconds;
  const double now = log_->seconds();
  bool due = options.every_iterations > 0 && done % options.every_iterations == 0;
  if (ends_together() || most_s > 0.0 || options.every_s > 0.0) {
    const auto agreed = agreement_.arrived(participant_, done).value_or(Agreement::Wish{});
    if (agreed.checkpoint) checkpoint_due_s_ = now + options.every_s;
    due = due || agreed.checkpoint;
    signal_ = agreed.signal;
    together_ = signal_ != 0;
    if (together_ || agreed.time_is_up) return false;
    agreement_.ask(participant_, done, now,
                   {.signal = ends_together() ? stop_.received() : 0,
                    .time_is_up = most_s > 0.0 && now >= most_s,
                    .checkpoint = options.every_s > 0.0 && now >= checkpoint_due_s_});
  }
  if (due) checkpoint();
  return ends_together() || stop_.received() == 0;
}

/// Asynchronous ranks end by themselves. For a checkpoint they meet: nothing is under way then, and none begins before
/// all have finished what they are at.
bool Session::go_on_alone() {
  const CheckpointOptions& options = plan_.parts().checkpoint;
  if (survivors_.may_die()) checkpoint_alone();
  const bool by_time = options.every_s > 0.0 && log_->seconds() >= checkpoint_due_s_;
  const bool by_iterations = checkpoint_due_ > 0 && job_done() >= static_cast<double>(checkpoint_due_);
  if (stop_.received() == 0 && (by_time || by_iterations) && !survivors_.may_die()) meet(true);
  if (stop_.received() != 0) return false;
  return plan_.parts().most_seconds == 0.0 || log_->seconds() < plan_.parts().most_seconds;
}

/// How often a checkpoint was due since this part of the run began.
std::uint64_t Session::checkpoint_periods() const {
  const CheckpointOptions& options = plan_.parts().checkpoint;
  if (options.every_s > 0.0) return static_cast<std::uint64_t>((log_->seconds() - began_s_) / options.every_s);
  if (options.every_iterations == 0) return 0;
  return static_cast<std::uint64_t>(job_done()) / static_cast<std::uint64_t>(options.every_iterations) -
         periods_before_;
}

/// Ranks that may die meet nobody on their way. The time, or what the job has done, says which checkpoint it is; one
/// that a rank has missed is not complete.
void Session::checkpoint_alone() {
  const std::uint64_t due = checkpoint_periods();
  if (due <= period_ || stop_.received() != 0) return;
  period_ = due;
  checkpoints_ = checkpoints_before_ + due - 1;
  checkpoint(Having::met_nobody);
}

/// Asynchronous ranks come here for a checkpoint, or because they have ended: as long as others come for a checkpoint,
/// those that have ended take part.
void Session::meet(bool for_checkpoint) {
  const CheckpointOptions& options = plan_.parts().checkpoint;
  if (!options.periodic()) return;
  for (bool again = true; again;) {
    double checkpoint_wanted = for_checkpoint ? 1.0 : 0.0;
    participant_.flush();
    participant_.engine().run([&] { communicator_.maximum({&checkpoint_wanted, 1}); });
    again = checkpoint_wanted > 0.0 && !for_checkpoint;
    if (checkpoint_wanted == 0.0) return;
    participant_.settle();
    checkpoint();
    if (options.every_s > 0.0) checkpoint_due_s_ = std::max(checkpoint_due_s_, log_->seconds()) + options.every_s;
    if (options.every_iterations > 0) checkpoint_due_ += options.every_iterations;
  }
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
  std::vector<double> of_dead(static_cast<std::size_t>(participant_.topology().ranks() + spares()));
  for (const LostRank& lost : survivors_.lost(0.0))
    of_dead[static_cast<std::size_t>(lost.process)] = static_cast<double>(lost.iterations);
  participant_.engine().run([&] {
    communicator_.sum(sum);
    communicator_.maximum(of_dead);
  });
  for (const double done : of_dead) sum[0] += done;
  return sum[0] / participant_.topology().ranks();
}

/// What asynchronous ranks have left on their way; a rank that stopped early has left fewer. Leaves the model as it is.
void Session::evaluate_snapshots() {
  if (!snapshots_ || plan_.parts().evaluate_every_epochs == 0) return;
  if (last_snapshot_) {  // of an attempt before this one, which may have ended with another model
    if (snapshots_->taken().size() > *last_snapshot_) snapshots_->load(*last_snapshot_);
  } else {
    last_snapshot_ = snapshots_->taken().size();
    leave_snapshot(job_done());
  }
  const std::size_t last = *last_snapshot_;
  const bool whole = snapshots_->taken().size() > last;
  const std::size_t missed = snapshots_missed();
  std::vector<double> common{whole ? static_cast<double>(missed + last) : 0.0};
  std::vector<double> lost{static_cast<double>(std::max(snapshots_->lost(), snapshots_evaluated_))};
  std::vector<double> missed_by(static_cast<std::size_t>(participant_.topology().ranks() + spares()));
  missed_by[static_cast<std::size_t>(rank_)] = static_cast<double>(missed);
  participant_.engine().run([&] {
    communicator_.minimum(common);
    communicator_.maximum(lost);
    if (spares() > 0) communicator_.maximum(missed_by);
  });
  if (snapshots_->lost() > 0 && rank_ == 0 && options_.warned)
    options_.warned("the models before the resumption were evaluated and removed: they are not evaluated again");
  for (auto i = static_cast<std::size_t>(lost[0]); i < static_cast<std::size_t>(common[0]); ++i) {
    survivors_.among(
        [&](int process) { return missed_by[static_cast<std::size_t>(process)] <= static_cast<double>(i); },
        [&] { evaluate_snapshot(i - missed); });
    snapshots_evaluated_ = i + 1;
  }
  if (common[0] > 0.0) snapshots_->load(last);
}

/// What the others had left before this process came.
std::size_t Session::snapshots_missed() const {
  return participant_.process() == place() ? 0 : static_cast<std::size_t>(joined_behind_ - evaluations_before_);
}

/// With those who have one of that time.
void Session::evaluate_snapshot(std::size_t i) {
  const Snapshots::Taken& taken = snapshots_->taken()[i];
  std::vector<double> when{taken.time_s};
  participant_.engine().run([&] { communicator_.maximum(when); });
  snapshots_->load(i);
  take_from_servers();
  evaluate(taken.job_iterations, when[0]);
}

/// Where ranks serve a part of the model each, that is the model: what they hold of other parts is a little older.
/// Collective.
void Session::take_from_servers() {
  if (!participant_.is_sharded() || !snapshots_) return;
  Parameters& replica = model_.replica();
  std::vector<float> x = fetched(*replica.device, replica.values.span());
  participant_.engine().run([&] {
    for (int server = 0; server < communicator_.size(); ++server) {
      const Part part = part_of(x.size(), communicator_.size(), server);
      communicator_.broadcast(std::as_writable_bytes(part.of(std::span(x))), server);
    }
  });
  replica.device->put(std::as_bytes(std::span(x)), replica.values.span());
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
  if (!reports()) return;
  log_->evaluation(job_done, time_s, mean_model_.metrics, mean_model_.loss, mean_model_.consensus_distance);
}

Summary Session::run() {
  prepare();
  const CheckpointOptions& options = plan_.parts().checkpoint;
  training_ = true;
  if (options_.begun) options_.begun();
  if (participant_.is_spare()) {
    if (!join()) return leave_unused();
  } else {
    log_->start_clock();
    began_s_ = log_->seconds();
  }
  checkpoint_due_s_ = began_s_ + options.every_s;
  checkpoints_before_ = checkpoints_;
  if (options.every_iterations > 0)
    periods_before_ = static_cast<std::uint64_t>(begun_with_ / options.every_iterations);
  if (options.every_iterations > 0)
    checkpoint_due_ = (static_cast<Iteration>(job_done()) / options.every_iterations + 1) * options.every_iterations;
  if (survivors_.may_die()) period_ = checkpoint_periods();
  watch();
  try {
    trainer_->run(
        length_, [this](Iteration k, double loss) { return observe(k, loss); },
        [this] { return may_go_on(trainer_->iterations_done()); });
    if (!together_ && !lockstep() && !survivors_.may_die() && stop_.received() == 0) meet(false);
    if (!together_) log_->last_iteration(trainer_->iterations_done() - 1, job_done(), participant_.exchange());
    note_times();
    if (signal_ == 0 && (ends_together() || stop_.received() == 0))
      return survivors_.may_die() ? finish_alive() : finish();
    left_in_order_ = true;
  } catch (const WaitInterrupted&) {
    note_times();
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

/// Everything that any rank has sent has arrived and is taken in.
void Session::settle() {
  if (survivors_.may_die())
    participant_.settle([this] { communicator_.barrier(); });
  else
    trainer_->settle();
}

/// Where ranks may die, also now. What is left to do then cannot be done by going back the usual way, on which MPI
/// waits for all ranks: the caller ends the process.
Summary Session::finish_alive() {
  Summary summary;
  const bool here = survivors_.attempt_together([&] { summary = finish(); });
  snapshots_.reset();  // with its file
  survivors_.leave();
  if (options_.survived) options_.survived(here && reports() ? &summary : nullptr);
  return summary;
}

/// Of a spare that nobody has needed, or that has come too late.
Summary Session::leave_unused() {
  constexpr double patience_s = 10.0;
  training_ = false;
  if (const int signal = stop_.received(); signal != 0) {
    participant_.engine().run([&] { static_cast<void>(farewell_.barrier_within(patience_s)); });
    throw Stopped(signal);
  }
  survivors_.leave();
  if (options_.survived) options_.survived(nullptr);
  return {};
}

Summary Session::finish() {
  settle();
  write_trace();
  evaluate_snapshots();
  take_from_servers();
  const double done = all_done();
  evaluate(done, times_.wall_s);
  const Evaluator::Ranks ranks = evaluator_.every_rank();
  if (plan_.parts().save_model) {
    const std::filesystem::path file = plan_.report().directory / "model.pt";
    const std::filesystem::path dictionary = plan_.report().directory / "state_dict.pt";
    write([&] { evaluator_.save_mean_model(file, dictionary, run_id_); });
  }
  checkpoint_writer_.wait();
  note_unwritten_checkpoints();
  if (snapshots_) snapshots_->keep_file(false);
  collect_problems();
  Summary summary = log_->summary("finished", done, reports());
  summary.ranks_lost = survivors_.lost(log_->seconds());
  summary.ranks_joined = survivors_.joined(log_->seconds());
  summary.message = survivors_.parts_text();
  if (summary.message.empty() && spares() > 0 && survivors_.left_waiting())
    summary.message = "a place stayed empty though a spare was there: none of its neighbours lived, to give it a model";
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
    participant_.rest();
  });
  if (plan_.parts().checkpoint.periodic()) checkpoint_folder_.prune(place(), plan_.parts().checkpoint.keep);
  return summary;
}

/// What is worth most comes first: the launcher may kill the job a second after the signal. That is the checkpoint
/// where all ranks have left after the same iteration, else the replica.
void Session::leave_stopped() {
  constexpr double patience_s = 10.0;
  training_ = false;  // nothing interrupts what follows
  const Stopped stopped(signal_ != 0 ? signal_ : stop_.received());
  if (together_) checkpoint();
  write([this] { model_.save(replica_file(plan_, rank_), run_id_); });
  write_trace();
  bool all_here = false;
  participant_.engine().run([&] {
    all_here = farewell_.barrier_within(patience_s);
    if (all_here && spares() > 0) farewell_.keep(first_processes());
  });
  if (all_here && !together_) settle_for_checkpoint();
  checkpoint_writer_.wait();
  note_unwritten_checkpoints();
  collect_problems();
  Summary summary = log_->summary("stopped", job_done());
  summary.message = stopped.what();
  participant_.engine().run([&] {
    if (all_here)
      complete_summary(summary, farewell_, account(), result());
    else
      summary.message += "; not every rank has received the signal";
    finish_report(summary);
  });
  throw stopped;
}

/// Asynchronous ranks that have left training, each between two iterations of its own. Not where one of them was
/// interrupted within an iteration, nor in a simulation.
void Session::settle_for_checkpoint() {
  if (lockstep() || options_.shares_process) return;
  double in_order = left_in_order_ ? 1.0 : 0.0, newest = static_cast<double>(checkpoints_);
  participant_.flush();
  participant_.engine().run([&] {
    farewell_.minimum({&in_order, 1});
    farewell_.maximum({&newest, 1});
  });
  if (in_order == 0.0) return;
  participant_.settle([this] { farewell_.barrier(); });
  checkpoints_ = static_cast<std::uint64_t>(newest);
  checkpoint();
}

/// Rank 0's, on every rank. Collective.
std::string common_run_id(mpi::Communicator& communicator, std::string of_rank_0) {
  of_rank_0.resize(run_id_length);
  communicator.broadcast(std::as_writable_bytes(std::span(of_rank_0)), 0);
  return of_rank_0;
}

}  // namespace

bool has_complete_checkpoint(const RunPlan& plan, std::string run_id) {
  mpi::Communicator communicator;
  run_id = common_run_id(communicator, std::move(run_id));
  InlineEngine engine([] { return false; });
  const CheckpointFolder folder(checkpoint_directory(plan.parts().checkpoint, plan.report().directory, run_id), run_id);
  return newest_checkpoint(engine, communicator, folder).has_value();
}

Summary train(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options) {
  std::optional<RunFolder> folder;  // of rank 0, if the caller has not made it
  std::string run_id = options.run_id;
  {
    mpi::Communicator communicator;
    require_same_run(communicator, plan.config_yaml());
    static_cast<void>(plan.topology(environment.ranks()));  // a P that does not fit leaves no run folder
    if (environment.rank() == 0 && run_id.empty())
      run_id =
          (options.resume ? folder.emplace(RunFolder::resumed(plan.report().directory)) : folder.emplace(plan.report()))
              .id();
    run_id = common_run_id(communicator, std::move(run_id));
  }
  use_threads(plan.parts().threads);
  Session session(environment, plan, options, run_id);
  return session.run();
}

}  // namespace hearsay

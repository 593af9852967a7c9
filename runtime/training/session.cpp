#include "runtime/training/session.hpp"

#include <cstdio>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/training/checkpoints.hpp"
#include "runtime/training/evaluations.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/rank.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

std::filesystem::path replica_file(const RunPlan& plan, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "model.rank%04d.pt", rank);
  return plan.report().directory / name;
}

/// A run on one rank, from the first model to the report.
class Session {
 public:
  Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options, std::string run_id)
      : rank_(environment, plan, options, std::move(run_id)), evaluations_(rank_), checkpoints_(rank_, evaluations_) {}
  Summary run();

 private:
  void prepare();
  void share_beginning();
  std::vector<int> first_processes() const;
  bool join();
  void tell_that_it_mixes();
  bool observe(Iteration k, double loss);
  bool may_go_on(Iteration done);
  bool go_on_together(Iteration done);
  bool go_on_alone();
  double all_done();
  void settle();
  Summary finish();
  Summary finish_alive();
  Summary finished_summary(double job_done);
  Summary leave_unused();
  [[noreturn]] void leave_stopped();
  [[noreturn]] void leave_diverged(const DivergenceError& error);
  void note_times();
  void finish_report(Summary& summary);
  RankResult result() const;

  TrainingRank rank_;
  Evaluations evaluations_;
  Checkpoints checkpoints_;
  bool told_that_it_mixes_ = false;  // of a spare that has taken a place
  std::chrono::nanoseconds
      began_{};                 // where there are spares: a reading of the ledger's clock, as if it had been one part
  int signal_ = 0;              // that ranks have agreed to end at
  bool left_in_order_ = false;  // between two iterations
  bool together_ = false;       // all ranks have left training after the same iteration
  RunTimes times_;
};

/// All ranks start from the same model and together.
void Session::prepare() {
  rank_.participant.engine().run([&] {
    broadcast_other_state(rank_.model, rank_.communicator);
    if (rank_.spares() == 0 || rank_.participant.is_spare()) return;
    rank_.communicator.keep(first_processes());
  });
  if (rank_.process == 0 && !rank_.data.vocabulary.empty())
    rank_.write([this] {
      write_file(rank_.plan.report().directory / "vocabulary.txt", "# " + rank_.run_id + "\n" + rank_.data.vocabulary);
    });
  rank_.make_trainer();
  if (rank_.participant.is_spare()) return share_beginning();
  evaluations_.keep_snapshots();
  if (rank_.options.resume) {
    checkpoints_.resume();
    std::error_code gone;  // of the part before; another one comes
    if (rank_.process == 0) std::filesystem::remove(rank_.plan.report().directory / "summary.json", gone);
  } else {
    rank_.log.emplace(rank_.sources());
  }
  rank_.participant.engine().run([&] {
    const auto hosts = gather_texts(rank_.communicator, rank_.host);
    if (rank_.process == 0) write_start(rank_.sources(), hosts);
    rank_.communicator.barrier();
  });
  if (rank_.spares() > 0) share_beginning();
}

/// Those that are no spares.
std::vector<int> Session::first_processes() const {
  std::vector<int> first(static_cast<std::size_t>(rank_.participant.topology().ranks()));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

/// What spares have to know of where the others begin, from rank 0. Collective over all processes.
void Session::share_beginning() {
  std::vector<std::int64_t> counts{static_cast<std::int64_t>(checkpoints_.written()), rank_.before.iterations,
                                   evaluations_.done()};
  double seconds = rank_.log ? rank_.log->seconds_before() : 0.0;
  rank_.participant.engine().run([&] {
    rank_.farewell.broadcast(std::as_writable_bytes(std::span(counts)), 0);
    rank_.farewell.broadcast(std::as_writable_bytes(std::span(&seconds, 1)), 0);
  });
  checkpoints_.go_on_behind(static_cast<std::uint64_t>(counts[0]));
  rank_.before = {.iterations = counts[1], .seconds = seconds};
  evaluations_.begin_behind(counts[2]);
  began_ = rank_.participant.ledger().now() - std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// Of a spare: false if it is not needed. Else it trains from now on in the place of a rank that has died, on that
/// rank's share, where the dead have stopped.
bool Session::join() {
  Participant& participant = rank_.participant;
  const RunPlan::Parts& plan = rank_.plan.parts();
  if (!participant.take_over(*plan.exchange)) return false;
  const FailureDetector& failures = *participant.failures();
  const int ranks = participant.topology().ranks();
  rank_.batches = make_batches(plan, rank_.data, ranks, rank_.place());
  for (int process = 0; process < ranks + rank_.spares(); ++process)
    if (failures.place_of(process) == rank_.place())
      rank_.batches.skip(static_cast<std::int64_t>(participant.batches_of(process)));
  evaluations_.join();
  rank_.log.emplace(rank_.sources());
  rank_.log->start_clock(began_);
  return true;
}

/// Between two iterations: records, progress, evaluation, stop. False ends training.
bool Session::observe(Iteration k, double loss) {
  if (rank_.trace) rank_.trace->iteration(k + 1);
  const double done = rank_.participant.job_iterations(k + 1);
  rank_.log->iteration(k, done, loss, rank_.participant.exchange());
  evaluations_.after(done);
  if (rank_.participant.mixes_since_s() && !std::exchange(told_that_it_mixes_, true)) tell_that_it_mixes();
  return may_go_on(k + 1);
}

/// Of a spare that has taken a place.
void Session::tell_that_it_mixes() {
  if (!rank_.options.joined) return;
  const Participant& participant = rank_.participant;
  const double now = std::chrono::duration<double>(participant.ledger().since_start()).count();
  char text[160];
  std::snprintf(text, sizeof text,
                "takes the place of rank %d, after %.2f s, in iteration %.0f of the job; it mixes since %.2f s",
                rank_.place(), rank_.log->seconds() - (now - participant.joined_at_s()), participant.job_iterations(0),
                rank_.log->seconds() - (now - *participant.mixes_since_s()));
  rank_.options.joined(text);
}

/// Between two iterations: whether neither a signal nor the clock ends training. Writes a checkpoint that is due.
bool Session::may_go_on(Iteration done) {
  checkpoints_.note_unwritten();
  return rank_.lockstep() ? go_on_together(done) : go_on_alone();
}

/// Lockstep ranks stop in the same iteration, and write checkpoints in the same one.
bool Session::go_on_together(Iteration done) {
  const double most_s = rank_.plan.parts().most_seconds;
  const double now = rank_.log->seconds();
  const bool by_the_clock = rank_.plan.parts().checkpoint.every_s > 0.0;
  bool due = checkpoints_.due_after(done);
  if (rank_.ends_together() || most_s > 0.0 || by_the_clock) {
    const auto agreed = rank_.agreement.arrived(rank_.participant, done).value_or(Agreement::Wish{});
    if (agreed.checkpoint) checkpoints_.agreed();
    due = due || agreed.checkpoint;
    signal_ = agreed.signal;
    together_ = signal_ != 0;
    if (together_ || agreed.time_is_up) return false;
    rank_.agreement.ask(rank_.participant, done, now,
                        {.signal = rank_.ends_together() ? rank_.stop.received() : 0,
                         .time_is_up = most_s > 0.0 && now >= most_s,
                         .checkpoint = checkpoints_.due_by_the_clock()});
  }
  if (due) checkpoints_.write();
  return rank_.ends_together() || rank_.stop.received() == 0;
}

/// Asynchronous ranks end by themselves.
bool Session::go_on_alone() {
  checkpoints_.go_on_alone();
  if (rank_.stop.received() != 0) return false;
  const double most_s = rank_.plan.parts().most_seconds;
  return most_s == 0.0 || rank_.log->seconds() < most_s;
}

/// What all ranks have done, over their number: exactly, when training is over. Collective.
double Session::all_done() {
  const int ranks = rank_.participant.topology().ranks();
  std::vector<double> sum{static_cast<double>(rank_.trainer->iterations_done())};
  std::vector<double> of_dead(static_cast<std::size_t>(ranks + rank_.spares()));
  for (const LostRank& lost : rank_.survivors.lost(0.0))
    of_dead[static_cast<std::size_t>(lost.process)] = static_cast<double>(lost.iterations);
  rank_.participant.engine().run([&] {
    rank_.communicator.sum(sum);
    rank_.communicator.maximum(of_dead);
  });
  for (const double done : of_dead) sum[0] += done;
  return sum[0] / ranks;
}

Summary Session::run() {
  prepare();
  rank_.training = true;
  if (rank_.options.begun) rank_.options.begun();
  if (rank_.participant.is_spare()) {
    if (!join()) return leave_unused();
  } else {
    rank_.log->start_clock();
    rank_.before.seconds = rank_.log->seconds();
  }
  checkpoints_.start();
  rank_.watch();
  const auto stopped = [this] { return rank_.stop.received() != 0; };
  try {
    rank_.trainer->run(
        rank_.length, [this](Iteration k, double loss) { return observe(k, loss); },
        [this] { return may_go_on(rank_.trainer->iterations_done()); });
    if (!together_ && !rank_.lockstep() && !rank_.survivors.may_die() && !stopped()) checkpoints_.accompany();
    if (!together_)
      rank_.log->last_iteration(rank_.trainer->iterations_done() - 1, rank_.job_done(), rank_.participant.exchange());
    note_times();
    if (signal_ == 0 && (rank_.ends_together() || !stopped()))
      return rank_.survivors.may_die() ? finish_alive() : finish();
    left_in_order_ = true;
  } catch (const WaitInterrupted&) {
    note_times();
  } catch (const DivergenceError& error) {
    leave_diverged(error);
  }
  leave_stopped();
}

/// Everything that any rank has sent has arrived and is taken in.
void Session::settle() {
  if (rank_.survivors.may_die())
    rank_.participant.settle([this] { rank_.communicator.barrier(); });
  else
    rank_.trainer->settle();
}

/// Where ranks may die, also now. What is left to do then cannot be done by going back the usual way, on which MPI
/// waits for all ranks: the caller ends the process.
Summary Session::finish_alive() {
  Summary summary;
  const bool here = rank_.survivors.attempt_together([&] { summary = finish(); });
  evaluations_.remove_snapshots();
  rank_.survivors.leave();
  if (rank_.options.survived) rank_.options.survived(here && rank_.reports() ? &summary : nullptr);
  return summary;
}

/// Of a spare that nobody has needed, or that has come too late.
Summary Session::leave_unused() {
  constexpr double patience_s = 10.0;
  rank_.training = false;
  if (const int signal = rank_.stop.received(); signal != 0) {
    rank_.participant.engine().run([&] { static_cast<void>(rank_.farewell.barrier_within(patience_s)); });
    throw Stopped(signal);
  }
  rank_.survivors.leave();
  if (rank_.options.survived) rank_.options.survived(nullptr);
  return {};
}

Summary Session::finish() {
  settle();
  rank_.write_trace();
  evaluations_.of_snapshots();
  const double done = all_done();
  evaluations_.at_end(done, times_.wall_s);
  const Evaluator::Ranks ranks = rank_.evaluator.every_rank();
  if (rank_.plan.parts().save_model) {
    const std::filesystem::path folder = rank_.plan.report().directory;
    rank_.write([&] { rank_.evaluator.save_mean_model(folder / "model.pt", folder / "state_dict.pt", rank_.run_id); });
  }
  checkpoints_.wait();
  evaluations_.forget_snapshots();
  rank_.collect_problems();
  Summary summary = finished_summary(done);
  const Evaluator::MeanModel& mean = evaluations_.mean_model();
  for (std::size_t i = 0; i < ranks.mean.size(); ++i)
    summary.take({.metric = ranks.mean[i].metric,
                  .mean_model = mean.metrics[i].value,
                  .rank_worst = ranks.worst[i].value,
                  .rank_mean = ranks.mean[i].value});
  summary.loss_mean_model = mean.loss;
  summary.consensus_distance = mean.consensus_distance;
  rank_.participant.engine().run([&] {
    complete_summary(summary, rank_.communicator, rank_.account(), result());
    finish_report(summary);
    rank_.communicator.barrier();
    rank_.participant.rest();
  });
  checkpoints_.prune();
  return summary;
}

/// Of the run, and of who is missing in it.
Summary Session::finished_summary(double job_done) {
  const Survivors& survivors = rank_.survivors;
  Summary summary = rank_.log->summary("finished", job_done, rank_.reports());
  summary.ranks_lost = survivors.lost(rank_.log->seconds());
  summary.ranks_joined = survivors.joined(rank_.log->seconds());
  summary.message = survivors.parts_text();
  if (summary.message.empty() && rank_.spares() > 0 && survivors.left_waiting())
    summary.message = "a place stayed empty though a spare was there: none of its neighbours lived, to give it a model";
  return summary;
}

/// What is worth most comes first: the launcher may kill the job a second after the signal. That is the checkpoint
/// where all ranks have left after the same iteration, else the replica.
void Session::leave_stopped() {
  constexpr double patience_s = 10.0;
  rank_.training = false;  // nothing interrupts what follows
  const Stopped stopped(signal_ != 0 ? signal_ : rank_.stop.received());
  if (together_) checkpoints_.write_last();
  rank_.write([this] { rank_.model.save(replica_file(rank_.plan, rank_.process), rank_.run_id); });
  rank_.write_trace();
  bool all_here = false;
  rank_.participant.engine().run([&] {
    all_here = rank_.farewell.barrier_within(patience_s);
    if (all_here && rank_.spares() > 0) rank_.farewell.keep(first_processes());
  });
  if (all_here && !together_) checkpoints_.write_when_settled(left_in_order_);
  checkpoints_.wait();
  rank_.collect_problems();
  Summary summary = rank_.log->summary("stopped", rank_.job_done());
  summary.message = stopped.what();
  rank_.participant.engine().run([&] {
    if (all_here)
      complete_summary(summary, rank_.farewell, rank_.account(), result());
    else
      summary.message += "; not every rank has received the signal";
    finish_report(summary);
  });
  throw stopped;
}

void Session::leave_diverged(const DivergenceError& error) {
  Summary summary = rank_.log->summary("diverged", rank_.job_done());
  summary.message = error.what();
  rank_.write_trace();
  rank_.collect_problems();
  summary.not_written = rank_.not_written;
  rank_.write([&] { write_summary(rank_.plan.report().directory, summary); });
  throw;
}

void Session::note_times() {
  times_ = {.wall_s = rank_.log->seconds(),
            .evaluate_s = rank_.participant.ledger().seconds(Phase::evaluate),
            .idle_s = rank_.trainer->idle_seconds()};
}

/// Who reports has the other ranks' words in the summary already.
void Session::finish_report(Summary& summary) {
  if (!rank_.reports()) return;
  const auto before = static_cast<std::ptrdiff_t>(rank_.not_written.size());
  rank_.write([&] { write_summary(rank_.plan.report().directory, summary); });
  summary.not_written.insert(summary.not_written.end(), rank_.not_written.begin() + before, rank_.not_written.end());
}

RankResult Session::result() const {
  const Parameters& replica = rank_.model.replica();
  return {.times = times_,
          .iterations = rank_.trainer->iterations_done(),
          .replica_hash = replica_hash(fetched(*replica.device, replica.values.span())),
          .shares = rank_.participant.exchange().shares(),
          .rank = rank_.place()};
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

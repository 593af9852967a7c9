#include "runtime/training/session.hpp"

#include <cstdio>
#include <optional>

#include "base/error.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/training/checkpoints.hpp"
#include "runtime/training/endings.hpp"
#include "runtime/training/evaluations.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/rank.hpp"
#include "runtime/training/set_up.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {
namespace {

/// A run on one rank, from the first model to the report.
class Session {
 public:
  Session(const Job& job, const RunPlan& plan, const TrainOptions& options, std::string run_id,
          std::shared_ptr<RunFolder> folder)
      : rank_(job, plan, options, std::move(run_id)),
        evaluations_(rank_),
        checkpoints_(rank_, evaluations_),
        endings_(rank_, evaluations_, checkpoints_) {
    if (!options.shares_process) rank_.diary.hold(std::move(folder));
  }
  Summary run();

 private:
  void prepare();
  void share_beginning();
  bool join();
  void tell_that_it_mixes();
  bool observe(Iteration k, double loss);
  bool may_go_on(Iteration done);
  bool go_on_together(Iteration done);
  bool go_on_alone();

  TrainingRank rank_;
  Evaluations evaluations_;
  Checkpoints checkpoints_;
  Endings endings_;
  bool told_that_it_mixes_ = false;  // of a spare that has taken a place
  // Where there are spares: a reading of the ledger's clock, as if the run had been one part.
  std::chrono::nanoseconds began_{};
  Endings::Stop stop_;
};

/// All ranks start from the same model and together.
void Session::prepare() {
  rank_.participant.communication().run([&] {
    broadcast_other_state(rank_.model, *rank_.communicator);
    if (rank_.spares() == 0 || rank_.participant.spare() != nullptr) return;
    rank_.communicator->keep(rank_.first_processes());
  });
  if (rank_.process == 0 && !rank_.data.vocabulary.empty())
    rank_.diary.write([this] {
      write_file(rank_.plan.report().directory / "vocabulary.txt", "# " + rank_.run_id + "\n" + rank_.data.vocabulary);
    });
  rank_.make_trainer();
  if (rank_.participant.spare() != nullptr) return share_beginning();
  evaluations_.keep_snapshots();
  if (rank_.options.resume) {
    checkpoints_.resume();
    std::error_code gone;  // of the part before; another one comes
    if (rank_.process == 0) std::filesystem::remove(rank_.plan.report().directory / "summary.json", gone);
  } else {
    rank_.diary.open();
    rank_.log.emplace(rank_.sources());
  }
  rank_.participant.communication().run([&] { rank_.diary.begin(*rank_.communicator, rank_.resumed_at); });
  if (rank_.spares() > 0) share_beginning();
}

/// What spares have to know of where the others begin, from rank 0. Collective over all processes.
void Session::share_beginning() {
  std::vector<std::int64_t> counts{static_cast<std::int64_t>(checkpoints_.written()), rank_.before.iterations,
                                   evaluations_.done()};
  double seconds = rank_.log ? rank_.log->seconds_before() : 0.0;
  rank_.participant.communication().run([&] {
    rank_.farewell->broadcast(std::as_writable_bytes(std::span(counts)), 0);
    rank_.farewell->broadcast(std::as_writable_bytes(std::span(&seconds, 1)), 0);
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
  if (!participant.spare()->take_over(*plan.exchange)) return false;
  const FailureDetector& failures = *participant.members().failures();
  const int ranks = participant.edges().topology().ranks();
  rank_.batches = make_batches(plan, rank_.data, ranks, rank_.place());
  for (int process = 0; process < ranks + rank_.spares(); ++process)
    if (failures.place_of(process) == rank_.place())
      rank_.batches.skip(static_cast<std::int64_t>(participant.members().batches_of(process)));
  evaluations_.join();
  rank_.diary.open();
  rank_.log.emplace(rank_.sources());
  rank_.log->start_clock(began_);
  return true;
}

/// Between two iterations: records, progress, evaluation, stop. False ends training.
bool Session::observe(Iteration k, double loss) {
  if (Trace* trace = rank_.diary.trace()) trace->iteration(k + 1);
  const double done = rank_.participant.members().job_iterations(k + 1);
  rank_.log->iteration(k, done, loss, rank_.reports());
  evaluations_.after(done);
  const Spare* const spare = rank_.participant.spare();
  if (spare != nullptr && spare->mixes_since_s() && !std::exchange(told_that_it_mixes_, true)) tell_that_it_mixes();
  return may_go_on(k + 1);
}

/// Of a spare that has taken a place.
void Session::tell_that_it_mixes() {
  if (!rank_.options.joined) return;
  const Participant& participant = rank_.participant;
  const Spare& spare = *participant.spare();
  const double now = std::chrono::duration<double>(participant.ledger().since_start()).count();
  char text[160];
  std::snprintf(text, sizeof text,
                "takes the place of rank %d, after %.2f s, in iteration %.0f of the job; it mixes since %.2f s",
                rank_.place(), rank_.log->seconds() - (now - *spare.joined_at_s()),
                participant.members().job_iterations(0), rank_.log->seconds() - (now - *spare.mixes_since_s()));
  rank_.options.joined(text);
}

/// Between two iterations: whether neither a signal nor the clock ends training. Writes a checkpoint that is due.
bool Session::may_go_on(Iteration done) {
  checkpoints_.note_unwritten();
  if (rank_.survivors.may_die() && rank_.reports()) rank_.diary.take_over_folder();
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
    stop_.signal = agreed.signal;
    stop_.together = agreed.signal != 0;
    if (stop_.together || agreed.time_is_up) return false;
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

Summary Session::run() {
  prepare();
  rank_.training = true;
  if (rank_.options.begun) rank_.options.begun();
  if (rank_.participant.spare() != nullptr) {
    if (!join()) return endings_.unused();
  } else {
    rank_.log->start_clock();
    rank_.before.seconds = rank_.log->seconds();
  }
  checkpoints_.start();
  rank_.diary.watch();
  const auto stopped = [this] { return rank_.stop.received() != 0; };
  try {
    rank_.trainer->run(
        rank_.length, [this](Iteration k, double loss) { return observe(k, loss); },
        [this] { return may_go_on(rank_.trainer->iterations_done()); });
    if (!stop_.together && !rank_.lockstep() && !rank_.survivors.may_die() && !stopped()) checkpoints_.accompany();
    if (!stop_.together) rank_.log->last_iteration(rank_.trainer->iterations_done() - 1, rank_.job_done());
    endings_.note_times();
    if (stop_.signal == 0 && (rank_.ends_together() || !stopped())) return endings_.finished();
    stop_.in_order = true;
  } catch (const WaitInterrupted&) {
    endings_.note_times();
  } catch (const DivergenceError& error) {
    endings_.diverged(error);
  }
  endings_.stopped(stop_);
}

/// Rank 0's, on every rank. Collective.
std::string common_run_id(Communicator& communicator, std::string of_rank_0) {
  of_rank_0.resize(run_id_length);
  communicator.broadcast(std::as_writable_bytes(std::span(of_rank_0)), 0);
  return of_rank_0;
}

}  // namespace

void require_device(const RunPlan& plan) {
  if (plan.parts().device != "cpu") require_gpu();
}

bool has_complete_checkpoint(const Job& job, const RunPlan& plan, std::string run_id) {
  const auto communicator = job.communicator();
  run_id = common_run_id(*communicator, std::move(run_id));
  InlineEngine engine([] { return false; });
  const CheckpointFolder folder(checkpoint_directory(plan.parts().checkpoint, plan.report().directory, run_id), run_id);
  return newest_checkpoint(engine, *communicator, folder).has_value();
}

Summary train(const Job& job, const RunPlan& plan, const TrainOptions& options) {
  std::shared_ptr<RunFolder> folder = options.folder;
  std::string run_id = folder ? folder->id() : "";
  {
    const auto communicator = job.communicator();
    require_same_run(*communicator, plan.config_yaml());
    static_cast<void>(plan.topology(job.ranks()));  // a P that does not fit leaves no run folder
    if (job.rank() == 0 && !folder) {
      folder = std::make_shared<RunFolder>(options.resume ? RunFolder::resumed(plan.report().directory)
                                                          : RunFolder(plan.report()));
      run_id = folder->id();
    }
    run_id = common_run_id(*communicator, std::move(run_id));
  }
  if (!folder && plan.parts().on_failure.others_go_on)
    folder = std::make_shared<RunFolder>(RunFolder::shared(plan.report().directory, run_id));
  use_threads(plan.parts().threads);
  Session session(job, plan, options, run_id, std::move(folder));
  return session.run();
}

}  // namespace hearsay

#include "runtime/training/session.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "runtime/failure/beginning.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/training/checkpoints.hpp"
#include "runtime/training/endings.hpp"
#include "runtime/training/evaluations.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/rank.hpp"
#include "runtime/training/set_up.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {
namespace {

/// A run on one rank, from the first model to the report.
class Session {
 public:
  Session(const Job& job, const RunPlan& plan, const TrainOptions& options, std::string run_id,
          std::shared_ptr<RunFolder> folder, std::optional<Beginning> told)
      : run_(job, plan, options, std::move(run_id), std::move(told)),
        learner_(job, run_),
        membership_(job, run_, learner_.model.replica()),
        evaluator_(learner_.model, test_set(run_.data), *membership_.communicator,
                   membership_.participant.communication().engine(), membership_.participant.ledger()),
        evaluations_(run_, learner_.model, membership_, evaluator_),
        checkpoints_(run_, learner_, membership_, evaluations_),
        endings_(run_, learner_, membership_, evaluator_, evaluations_, checkpoints_) {
    if (!options.shares_process) membership_.record.diary.hold(std::move(folder));
  }
  Summary run();

 private:
  void prepare();
  void share_beginning();
  Beginning agreed_beginning();
  bool join();
  void tell_that_it_mixes();
  bool observe(Iteration k, double loss);
  bool may_go_on(Iteration done);
  bool go_on_together(Iteration done);
  bool go_on_alone();

  Run run_;
  Learner learner_;
  Membership membership_;
  Evaluator evaluator_;
  Evaluations evaluations_;
  Checkpoints checkpoints_;
  Endings endings_;
  bool told_that_it_mixes_ = false;  // of a spare that has taken a dead rank's vertex
  // Where there are spares: a reading of the ledger's clock, as if the run had been one part.
  std::chrono::nanoseconds began_{};
  Endings::Stop stop_;
};

/// All ranks start from the same model and together.
void Session::prepare() {
  membership_.participant.communication().run([&] {
    if (run_.is_late()) return;
    broadcast_other_state(learner_.model, *membership_.communicator);
    if (run_.spares() == 0 || membership_.participant.spare() != nullptr) return;
    membership_.communicator->keep(membership_.first_processes(run_));
  });
  if (run_.process == 0 && !run_.data.vocabulary.empty())
    membership_.record.diary.write([this] {
      write_file(run_.plan.report().directory / "vocabulary.txt", "# " + run_.id + "\n" + run_.data.vocabulary);
    });
  set_trainer(learner_, run_, membership_);
  if (membership_.participant.spare() != nullptr) return share_beginning();
  evaluations_.keep_snapshots();
  if (run_.options.resume) {
    checkpoints_.resume();
    std::error_code gone;  // of the part before; another one comes
    if (run_.process == 0) std::filesystem::remove(run_.plan.report().directory / "summary.json", gone);
  } else {
    membership_.record.diary.open();
    membership_.begin_log(run_);
  }
  membership_.participant.communication().run(
      [&] { membership_.record.diary.begin(*membership_.communicator, membership_.record.resumed_at); });
  if (run_.spares() > 0) share_beginning();
}

/// Rank 0 tells spares where the others begin, and all tell it those who come later.
void Session::share_beginning() {
  const Beginning beginning = run_.told ? *run_.told : agreed_beginning();
  checkpoints_.go_on_after(static_cast<std::uint64_t>(beginning.checkpoints));
  membership_.record.before = {.iterations = beginning.iterations, .seconds = beginning.seconds};
  evaluations_.begin_after(beginning.evaluations);
  const std::chrono::duration<double> before(beginning.seconds);
  const auto since =
      run_.told ? std::chrono::system_clock::now() - beginning.training_began : std::chrono::nanoseconds{0};
  began_ =
      membership_.participant.ledger().now() - std::chrono::duration_cast<std::chrono::nanoseconds>(before) - since;
  if (run_.late != nullptr) run_.late->welcome(beginning.packed());
}

/// Collective over all processes that have started together.
Beginning Session::agreed_beginning() {
  const auto now = std::chrono::system_clock::now();
  Beginning beginning{.run_id = {},
                      .checkpoints = static_cast<std::int64_t>(checkpoints_.written()),
                      .iterations = membership_.record.before.iterations,
                      .evaluations = evaluations_.done(),
                      .seconds = membership_.record.log ? membership_.record.log->seconds_before() : 0.0,
                      .training_began = now,
                      .clocks_began = now - membership_.participant.ledger().since_start()};
  membership_.participant.communication().run([&] { beginning.share(*membership_.farewell); });
  beginning.run_id = run_.id;
  return beginning;
}

/// False if a spare is not needed. Else it trains from now on at the vertex of a rank that has died, on that rank's
/// share, where the dead have stopped.
bool Session::join() {
  Participant& participant = membership_.participant;
  const RunPlan::Parts& plan = run_.plan.parts();
  if (!participant.spare()->take_over(*plan.exchange)) return false;
  const FailureDetector& failures = *participant.members().failures();
  const int ranks = participant.edges().topology().ranks();
  learner_.batches = make_batches(plan, run_.data, ranks, membership_.vertex());
  for (int process = 0; process < ranks + run_.spares(); ++process)
    if (failures.vertex_of(process) == membership_.vertex())
      learner_.batches.skip(static_cast<std::int64_t>(participant.members().batches_of(process)));
  evaluations_.join(learner_.trainer->job_done());
  membership_.record.diary.open();
  membership_.begin_log(run_);
  membership_.record.log->start_clock(began_);
  return true;
}

/// Between two iterations: records, progress, evaluation, stop. False ends training.
bool Session::observe(Iteration k, double loss) {
  if (Trace* trace = membership_.record.diary.trace()) trace->iteration(k + 1);
  const double done = membership_.participant.members().job_iterations(k + 1);
  membership_.record.log->iteration(k, done, loss, membership_.reports());
  evaluations_.after(done);
  const Spare* const spare = membership_.participant.spare();
  if (spare != nullptr && spare->mixes_since_s() && !std::exchange(told_that_it_mixes_, true)) tell_that_it_mixes();
  return may_go_on(k + 1);
}

/// A spare has taken a vertex.
void Session::tell_that_it_mixes() {
  if (!run_.options.joined) return;
  const Participant& participant = membership_.participant;
  const Spare& spare = *participant.spare();
  const double now = std::chrono::duration<double>(participant.ledger().since_start()).count();
  char text[160];
  std::snprintf(text, sizeof text,
                "takes the place of rank %d, after %.2f s, in iteration %.0f of the job; it mixes since %.2f s",
                membership_.vertex(), membership_.record.log->seconds() - (now - *spare.joined_at_s()),
                participant.members().job_iterations(0),
                membership_.record.log->seconds() - (now - *spare.mixes_since_s()));
  run_.options.joined(text);
}

/// Between two iterations: whether neither a signal nor the clock ends training. Writes a checkpoint that is due.
bool Session::may_go_on(Iteration done) {
  checkpoints_.note_unwritten();
  if (membership_.survivors.may_die() && membership_.reports()) membership_.record.diary.take_over_folder();
  return run_.lockstep() ? go_on_together(done) : go_on_alone();
}

/// Lockstep ranks stop in the same iteration, and write checkpoints in the same one.
bool Session::go_on_together(Iteration done) {
  const double most_s = run_.plan.parts().most_seconds;
  const double now = membership_.record.log->seconds();
  const bool by_the_clock = run_.plan.parts().checkpoint.every_s > 0.0;
  bool due = checkpoints_.due_after(done);
  if (run_.ends_together() || most_s > 0.0 || by_the_clock) {
    const auto agreed = membership_.agreement.arrived(membership_.participant, done).value_or(Agreement::Wish{});
    if (agreed.checkpoint) checkpoints_.agreed();
    due = due || agreed.checkpoint;
    stop_.signal = agreed.signal;
    stop_.together = agreed.signal != 0;
    if (stop_.together || agreed.time_is_up) return false;
    membership_.agreement.ask(membership_.participant, done, now,
                              {.signal = run_.ends_together() ? run_.stop.received() : 0,
                               .time_is_up = most_s > 0.0 && now >= most_s,
                               .checkpoint = checkpoints_.due_by_the_clock()});
  }
  if (due) checkpoints_.write();
  return run_.ends_together() || run_.stop.received() == 0;
}

/// Asynchronous ranks end by themselves.
bool Session::go_on_alone() {
  checkpoints_.go_on_alone();
  if (run_.stop.received() != 0) return false;
  const double most_s = run_.plan.parts().most_seconds;
  return most_s == 0.0 || membership_.record.log->seconds() < most_s;
}

Summary Session::run() {
  prepare();
  membership_.training = true;
  if (run_.options.begun) run_.options.begun();
  if (membership_.participant.spare() != nullptr) {
    if (!join()) return endings_.unused();
  } else {
    membership_.record.log->start_clock();
    membership_.record.before.seconds = membership_.record.log->seconds();
  }
  checkpoints_.start();
  membership_.record.diary.watch();
  const auto stopped = [this] { return run_.stop.received() != 0; };
  try {
    learner_.trainer->run(
        run_.length, [this](Iteration k, double loss) { return observe(k, loss); },
        [this] { return may_go_on(learner_.trainer->iterations_done()); });
    if (!stop_.together && !run_.lockstep() && !membership_.survivors.may_die() && !stopped()) checkpoints_.accompany();
    if (!stop_.together)
      membership_.record.log->last_iteration(learner_.trainer->iterations_done() - 1, learner_.trainer->job_done());
    endings_.note_times();
    if (stop_.signal == 0 && (run_.ends_together() || !stopped())) return endings_.finished();
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

/// Where others may come later: lets them come, or, in one that has come, waits for what it is told.
std::optional<Beginning> open_places(const Job& job, const RunPlan& plan) {
  const OnFailure& members = plan.parts().on_failure;
  LateMembers* const late = job.late_members();
  if (members.joins == 0) {
    if (late != nullptr) late->close_places();
    return std::nullopt;
  }
  if (late == nullptr)
    throw ConfigError("train.joins: others can join a job that is started without MPI, on two ranks or more: " +
                      std::string("`hearsay launch -n P --recover hearsay train …`, torchrun, or a shell loop with "
                                  "HEARSAY_RANK and HEARSAY_RANKS"));
  late->open_places(job.ranks() + members.vacant, members.joins, configuration_hash(plan));
  if (!late->is_late()) return std::nullopt;
  return Beginning::unpacked(late->await_welcome([] {}));
}

}  // namespace

std::string configuration_hash(const RunPlan& plan) {
  return hexadecimal(xxh3(std::as_bytes(std::span(plan.config_yaml()))));
}

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
  if (const LateMembers* const late = job.late_members(); late == nullptr || !late->is_late()) {
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
  const std::optional<Beginning> told = open_places(job, plan);
  if (told) run_id = told->run_id;
  if (!folder && plan.parts().on_failure.others_go_on)
    folder = std::make_shared<RunFolder>(RunFolder::shared(plan.report().directory, run_id));
  use_threads(plan.parts().threads);
  Session session(job, plan, options, run_id, std::move(folder), told);
  return session.run();
}

}  // namespace hearsay

#include "runtime/training/checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/training/failure/killed_run.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {

Checkpoints::Checkpoints(const Run& run, Learner& learner, Membership& membership, Evaluations& evaluations)
    : run_(run),
      learner_(learner),
      membership_(membership),
      evaluations_(evaluations),
      folder_(checkpoint_directory(options(), run.plan.report().directory, run.id), run.id),
      writer_(folder_, options().keep) {}

/// Each part of a rank says its own state.
void Checkpoints::parts(const TellPart& tell) {
  tell("model", [this](Archive& archive) { learner_.model.state(archive); });
  tell("optimizer", [this](Archive& archive) { learner_.optimizer->state(archive); });
  tell("participant", [this](Archive& archive) { membership_.participant.state(archive); });
  tell("log", [this](Archive& archive) { membership_.record.log->state(archive); });
  tell("training", [this](Archive& archive) {
    constexpr std::size_t most_resumptions = 1'000'000;
    learner_.trainer->state(archive);
    if (archive.loads()) learner_.batches.skip(learner_.trainer->iterations_done());
    learner_.batches.state(archive);
    learner_.random.state(archive, run_.plan.parts().device != "cpu");
    evaluations_.count_state(archive);
    archive.list("iterations of resumptions", membership_.record.resumed_at, most_resumptions);
    evaluations_.snapshots_state(archive);
  });
}

// The bytes are gathered here and written while training goes on. What a rank remembers of others would not fit what
// they remember of it where they have not met: it is left out.
void Checkpoints::write(Having having, bool durable) {
  const Topology& topology = membership_.participant.edges().topology();
  const Layout& layout = learner_.model.replica().layout;
  RawBytes& bytes = writer_.buffer();
  bytes.reserve(checkpoint_bytes(run_.plan.parts(), learner_.model,
                                 membership_.participant.edges().neighbourhood().neighbours.size(), topology.ranks()));
  Archive archive = Archive::saving(bytes);
  const bool settled = having == Having::met;
  parts([&](const std::string_view name, const std::function<void(Archive&)>& state) {
    if (settled || name == "model" || name == "log") archive.part(name.data(), state);
  });
  archive.part("residual", [&](Archive& part) {
    std::vector<float> owed(layout.size());
    add_residual(membership_.participant.exchange(), owed);
    if (std::ranges::all_of(owed, [](float value) { return value == 0.0F; })) owed.clear();
    part.list("residual", owed, owed.size());
  });
  writer_.write({.number = ++written_,
                 .iteration = learner_.trainer->iterations_done(),
                 .epoch = run_.length.epoch(learner_.trainer->job_done()),
                 .rank = membership_.vertex(),
                 .ranks = topology.ranks(),
                 .settled = settled,
                 .lost = membership_.survivors.missing()},
                durable);
  note_unwritten();
}

void Checkpoints::note_unwritten() {
  for (const std::string& problem : writer_.problems())
    membership_.record.diary.note_unwritten("a checkpoint: " + problem,
                                            "a checkpoint could not be written: " + problem + "; training goes on");
}

void Checkpoints::wait() {
  writer_.wait();
  note_unwritten();
}

void Checkpoints::prune() const {
  if (options().periodic()) folder_.prune(membership_.vertex(), options().keep, membership_.survivors.missing());
}

// The run before was killed if it has left no summary. One is written for it, which stays to be read where there is
// nothing to go on from.
void Checkpoints::resume() {
  if (run_.process == 0) membership_.record.diary.write([this] { leave_killed_summary(run_.plan.report().directory); });
  const Resumption found =
      find_checkpoint(membership_.participant.communication().engine(), *membership_.communicator, folder_);
  const auto an_epoch = static_cast<double>(run_.length.iterations_per_epoch);
  membership_.record.before.iterations = static_cast<Iteration>(std::llround(found.epoch * an_epoch));
  written_ = found.number;
  if (found.ranks != membership_.participant.edges().topology().ranks() || !found.settled)
    return begin_with_mean(found);
  const std::string file = folder_.state_file(found.number, run_.process).string();
  membership_.record.diary.reopen();
  membership_.begin_log(run_);
  parts([&](const char* name, const std::function<void(Archive&)>& state) {
    load_part(found.states.front(), name, file, state);
  });
  membership_.record.resumed_at.push_back(learner_.trainer->iterations_done());
  say_resumed("goes on from checkpoint " + std::to_string(found.number) + ", iteration " +
              std::to_string(learner_.trainer->iterations_done()));
}

/// On another number of ranks, or where ranks wrote each for itself. What a rank alone remembers has no place any more.
void Checkpoints::begin_with_mean(const Resumption& found) {
  const std::vector<float> owed = load_mean(found, membership_.participant.communication().engine(),
                                            *membership_.communicator, folder_, learner_.model);
  const Iteration done = membership_.record.before.iterations;
  membership_.participant.begin_at(done, *run_.plan.parts().exchange, owed);
  learner_.trainer->begin_at(done);
  learner_.batches.skip(done);
  membership_.record.diary.reopen();
  membership_.begin_log(run_);
  if (!found.of.empty() && found.of.front() == run_.process)
    load_part(found.states.front(), "log", folder_.state_file(found.number, run_.process).string(),
              [this](Archive& archive) { membership_.record.log->state(archive); });
  else
    membership_.record.diary.begin_anew();
  evaluations_.begin_after_iterations(done);
  membership_.record.resumed_at.push_back(done);
  say_resumed("checkpoint " + std::to_string(found.number) + " is of " + std::to_string(found.living) +
              (found.settled
                   ? " ranks, and there are " + std::to_string(membership_.participant.edges().topology().ranks())
                   : " ranks that wrote each for itself") +
              ": all ranks start from the mean of their models at iteration " + std::to_string(done) +
              (owed.empty() ? "" : ", residuals are handed out") +
              "; moments, triggers and corrections begin anew, and counts begin at 0");
}

void Checkpoints::say_resumed(const std::string& words) const {
  if (run_.process == 0 && run_.options.resumed) run_.options.resumed(words);
}

void Checkpoints::start() {
  const Iteration every = options().every_iterations;
  due_s_ = membership_.record.before.seconds + options().every_s;
  written_before_ = written_;
  if (every > 0) {
    periods_before_ = static_cast<std::uint64_t>(membership_.record.before.iterations / every);
    due_ = (static_cast<Iteration>(learner_.trainer->job_done()) / every + 1) * every;
  }
  if (membership_.survivors.may_die()) period_ = periods();
}

bool Checkpoints::due_after(Iteration done) const {
  return options().every_iterations > 0 && done % options().every_iterations == 0;
}

bool Checkpoints::due_by_the_clock() const {
  return options().every_s > 0.0 && membership_.record.log->seconds() >= due_s_;
}

void Checkpoints::agreed() { due_s_ = membership_.record.log->seconds() + options().every_s; }

void Checkpoints::go_on_alone() {
  if (membership_.survivors.may_die()) return write_alone();
  const bool by_iterations = due_ > 0 && learner_.trainer->job_done() >= static_cast<double>(due_);
  if (run_.stop.received() == 0 && (due_by_the_clock() || by_iterations)) meet(Coming::for_a_checkpoint);
}

/// How often a checkpoint was due since this part of the run began.
std::uint64_t Checkpoints::periods() const {
  if (options().every_s > 0.0)
    return static_cast<std::uint64_t>((membership_.record.log->seconds() - membership_.record.before.seconds) /
                                      options().every_s);
  if (options().every_iterations == 0) return 0;
  return static_cast<std::uint64_t>(learner_.trainer->job_done()) /
             static_cast<std::uint64_t>(options().every_iterations) -
         periods_before_;
}

/// Ranks that may die meet nobody on their way. The time, or what the job has done, says which checkpoint it is; one
/// that a rank has missed is not complete.
void Checkpoints::write_alone() {
  const std::uint64_t due = periods();
  if (due <= period_ || run_.stop.received() != 0) return;
  period_ = due;
  written_ = written_before_ + due - 1;
  write(Having::met_nobody, run_.stop.received() == 0);
}

/// Nothing is under way when all have come, and none goes on before all have finished what they are at.
void Checkpoints::meet(Coming coming) {
  if (!options().periodic()) return;
  const bool wants_one = coming == Coming::for_a_checkpoint;
  for (bool again = true; again;) {
    double wanted = wants_one ? 1.0 : 0.0;
    membership_.participant.communication().flush();
    membership_.participant.communication().run([&] { membership_.communicator->maximum({&wanted, 1}); });
    if (wanted == 0.0) return;
    again = !wants_one;
    membership_.participant.settle();
    write();
    if (options().every_s > 0.0) due_s_ = std::max(due_s_, membership_.record.log->seconds()) + options().every_s;
    if (options().every_iterations > 0) due_ += options().every_iterations;
  }
}

void Checkpoints::write_when_settled(bool in_order) {
  if (run_.lockstep() || run_.options.shares_process) return;
  double all_in_order = in_order ? 1.0 : 0.0, newest = static_cast<double>(written_);
  membership_.participant.communication().flush();
  membership_.participant.communication().run([&] {
    membership_.farewell->minimum({&all_in_order, 1});
    membership_.farewell->maximum({&newest, 1});
  });
  if (all_in_order == 0.0) return;
  membership_.participant.settle([this] { membership_.farewell->barrier(); });
  written_ = static_cast<std::uint64_t>(newest);
  write_last();
}

}  // namespace hearsay

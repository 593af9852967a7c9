#include "runtime/training/endings.hpp"

#include <cstdio>

#include "runtime/report/files.hpp"

namespace hearsay {
namespace {

constexpr double patience_s = 10.0;  // with ranks that the signal may not have reached

std::filesystem::path replica_file(const RunPlan& plan, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "model.rank%04d.pt", rank);
  return plan.report().directory / name;
}

}  // namespace

void Endings::note_times() {
  times_ = {.wall_s = membership_.record.log->seconds(),
            .evaluate_s = membership_.participant.ledger().seconds(Phase::evaluate),
            .idle_s = learner_.trainer->idle_seconds()};
}

Summary Endings::finished() { return membership_.survivors.may_die() ? finish_alive() : finish(); }

/// Where ranks may die, also now. What is left to do then cannot be done by going back the usual way, on which MPI
/// waits for all ranks: the caller ends the process.
Summary Endings::finish_alive() {
  Summary summary;
  if (run_.late != nullptr) run_.late->close_places();
  const bool here = membership_.survivors.attempt_together([&] { summary = finish(); });
  evaluations_.remove_snapshots();
  const bool reports = here && membership_.reports();
  if (reports) {
    membership_.record.diary.take_over_folder();
    evaluations_.remove_snapshots_of_dead();
  }
  membership_.survivors.leave();
  membership_.record.diary.give_back_folder();
  if (run_.options.survived) run_.options.survived(reports ? &summary : nullptr);
  return summary;
}

Summary Endings::finish() {
  membership_.participant.service().end();
  settle();
  membership_.record.diary.write_trace();
  evaluations_.of_snapshots(learner_.trainer->job_done());
  const double done = all_done();
  evaluations_.at_end(done, times_.wall_s);
  const Evaluator::Ranks ranks = evaluator_.every_rank();
  if (run_.plan.parts().save_model) {
    const std::filesystem::path folder = run_.plan.report().directory;
    membership_.record.diary.write(
        [&] { evaluator_.save_mean_model(folder / "model.pt", folder / "state_dict.pt", run_.id); });
  }
  evaluations_.require_finite_loss(done);
  checkpoints_.wait();
  evaluations_.forget_snapshots();
  Summary summary = summary_of_run(done);
  const Evaluator::MeanModel& mean = evaluations_.mean_model();
  for (std::size_t i = 0; i < ranks.mean.size(); ++i)
    summary.take({.metric = ranks.mean[i].metric,
                  .mean_model = mean.metrics[i].value,
                  .rank_worst = ranks.worst[i].value,
                  .rank_mean = ranks.mean[i].value});
  summary.loss_mean_model = mean.loss;
  summary.consensus_distance = mean.consensus_distance;
  membership_.participant.communication().run([&] {
    membership_.record.diary.finish(summary, *membership_.communicator, result(), membership_.reports());
    membership_.communicator->barrier();
    membership_.participant.members().rest();
  });
  checkpoints_.prune();
  return summary;
}

/// Everything that any rank has sent has arrived and is taken in.
void Endings::settle() {
  if (membership_.survivors.may_die())
    membership_.participant.settle([this] { membership_.communicator->barrier(); });
  else
    membership_.participant.settle();
}

/// The iterations of all ranks, over their number: exactly, when training is over. Collective.
double Endings::all_done() {
  const int ranks = membership_.participant.edges().topology().ranks();
  std::vector<double> sum{static_cast<double>(learner_.trainer->iterations_done())};
  std::vector<double> of_dead(static_cast<std::size_t>(ranks + run_.spares()));
  for (const LostRank& lost : membership_.survivors.lost(0.0))
    of_dead[static_cast<std::size_t>(lost.process)] = static_cast<double>(lost.iterations);
  membership_.participant.communication().run([&] {
    membership_.communicator->sum(sum);
    membership_.communicator->maximum(of_dead);
  });
  for (const double done : of_dead) sum[0] += done;
  return sum[0] / ranks;
}

/// The summary names who is missing.
Summary Endings::summary_of_run(double job_done) {
  const Survivors& survivors = membership_.survivors;
  Summary summary = membership_.record.log->summary("finished", job_done, membership_.reports());
  const double began_s = survivors.began_s(membership_.record.log->seconds());
  summary.ranks_lost = survivors.lost(began_s);
  summary.ranks_joined = survivors.joined(began_s);
  summary.message = survivors.parts_text();
  if (summary.message.empty() && run_.spares() > 0 && survivors.left_waiting())
    summary.message =
        "a vertex stayed empty though a spare was there: none of its neighbours lived, to give it a model";
  return summary;
}

RankResult Endings::result() const {
  const Parameters& replica = learner_.model.replica();
  return {.times = times_,
          .iterations = learner_.trainer->iterations_done(),
          .replica_hash = replica_hash(fetched(*replica.device, replica.values.span())),
          .shares = measures_of(membership_.participant.exchange()).shares(),
          .rank = membership_.vertex()};
}

/// False where a rank dies meanwhile: what `work` waits for would not come.
bool Endings::nobody_dies(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const RankDied&) {
    return false;
  }
}

/// Whether a signal has brought every rank here.
bool Endings::all_come() {
  if (run_.others_may_come()) return false;  // nobody knows who all are
  bool all_here = false;
  const auto meet = [&] {
    membership_.survivors.forget_the_dead();
    all_here = membership_.farewell->barrier_within(patience_s);
  };
  return nobody_dies([&] { membership_.participant.communication().run(meet); }) && all_here;
}

Summary Endings::unused() {
  membership_.training = false;
  if (run_.late != nullptr) run_.late->close_places();
  if (const int signal = run_.stop.received(); signal != 0) {
    static_cast<void>(all_come());
    throw Stopped(signal);
  }
  if (run_.is_late() && run_.options.joined)
    run_.options.joined("was not needed: the job has ended, and no vertex was free before");
  membership_.survivors.leave();
  if (run_.options.survived) run_.options.survived(nullptr);
  return {};
}

/// The most valuable file comes first: the launcher may kill the job a second after the signal. That is the checkpoint
/// where all ranks have left after the same iteration, else the replica.
void Endings::stopped(const Stop& stop) {
  membership_.training = false;  // nothing interrupts what follows
  if (run_.late != nullptr) run_.late->close_places();
  const Stopped reason(stop.signal != 0 ? stop.signal : run_.stop.received());
  if (stop.together) checkpoints_.write_last();
  membership_.record.diary.write([this] { learner_.model.save(replica_file(run_.plan, run_.process), run_.id); });
  membership_.record.diary.write_trace();
  const bool all_came = all_come();
  const auto save = [&] {
    if (run_.spares() > 0)
      membership_.participant.communication().run(
          [&] { membership_.farewell->keep(membership_.first_processes(run_)); });
    if (!stop.together) checkpoints_.write_when_settled(stop.in_order);
  };
  const bool all_live = all_came && nobody_dies(save);
  checkpoints_.wait();
  Summary summary = membership_.record.log->summary("stopped", learner_.trainer->job_done(), membership_.reports());
  summary.message = reason.what();
  const auto finish = [&] {
    membership_.record.diary.finish(summary, *membership_.farewell, result(), membership_.reports());
  };
  if (!all_live || !nobody_dies([&] { membership_.participant.communication().run(finish); })) {
    if (!run_.others_may_come())
      summary.message += all_came ? "; a rank has died meanwhile" : "; not every rank has received the signal";
    if (membership_.reports()) membership_.record.diary.end(summary);
  }
  if (membership_.reports()) membership_.record.diary.take_over_folder();
  membership_.record.diary.give_back_folder();
  throw reason;
}

void Endings::diverged(const DivergenceError& error) {
  if (run_.late != nullptr) run_.late->close_places();
  Summary summary = membership_.record.log->summary("diverged", learner_.trainer->job_done(), true);
  summary.message = error.what();
  membership_.record.diary.write_trace();
  membership_.record.diary.end(summary);
  throw;
}

}  // namespace hearsay

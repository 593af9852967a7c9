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
  times_ = {.wall_s = rank_.log->seconds(),
            .evaluate_s = rank_.participant.ledger().seconds(Phase::evaluate),
            .idle_s = rank_.trainer->idle_seconds()};
}

Summary Endings::finished() { return rank_.survivors.may_die() ? finish_alive() : finish(); }

/// Where ranks may die, also now. What is left to do then cannot be done by going back the usual way, on which MPI
/// waits for all ranks: the caller ends the process.
Summary Endings::finish_alive() {
  Summary summary;
  const bool here = rank_.survivors.attempt_together([&] { summary = finish(); });
  evaluations_.remove_snapshots();
  const bool reports = here && rank_.reports();
  if (reports) {
    rank_.diary.take_over_folder();
    evaluations_.remove_snapshots_of_dead();
  }
  rank_.survivors.leave();
  rank_.diary.give_back_folder();
  if (rank_.options.survived) rank_.options.survived(reports ? &summary : nullptr);
  return summary;
}

Summary Endings::finish() {
  rank_.participant.service().end();
  settle();
  rank_.diary.write_trace();
  evaluations_.of_snapshots();
  const double done = all_done();
  evaluations_.at_end(done, times_.wall_s);
  const Evaluator::Ranks ranks = rank_.evaluator.every_rank();
  if (rank_.plan.parts().save_model) {
    const std::filesystem::path folder = rank_.plan.report().directory;
    rank_.diary.write(
        [&] { rank_.evaluator.save_mean_model(folder / "model.pt", folder / "state_dict.pt", rank_.run_id); });
  }
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
  rank_.participant.communication().run([&] {
    rank_.diary.finish(summary, *rank_.communicator, result(), rank_.reports());
    rank_.communicator->barrier();
    rank_.participant.members().rest();
  });
  checkpoints_.prune();
  return summary;
}

/// Everything that any rank has sent has arrived and is taken in.
void Endings::settle() {
  if (rank_.survivors.may_die())
    rank_.participant.settle([this] { rank_.communicator->barrier(); });
  else
    rank_.participant.settle();
}

/// What all ranks have done, over their number: exactly, when training is over. Collective.
double Endings::all_done() {
  const int ranks = rank_.participant.edges().topology().ranks();
  std::vector<double> sum{static_cast<double>(rank_.trainer->iterations_done())};
  std::vector<double> of_dead(static_cast<std::size_t>(ranks + rank_.spares()));
  for (const LostRank& lost : rank_.survivors.lost(0.0))
    of_dead[static_cast<std::size_t>(lost.process)] = static_cast<double>(lost.iterations);
  rank_.participant.communication().run([&] {
    rank_.communicator->sum(sum);
    rank_.communicator->maximum(of_dead);
  });
  for (const double done : of_dead) sum[0] += done;
  return sum[0] / ranks;
}

/// Of the run, and of who is missing in it.
Summary Endings::summary_of_run(double job_done) {
  const Survivors& survivors = rank_.survivors;
  Summary summary = rank_.log->summary("finished", job_done, rank_.reports());
  const double began_s = survivors.began_s(rank_.log->seconds());
  summary.ranks_lost = survivors.lost(began_s);
  summary.ranks_joined = survivors.joined(began_s);
  summary.message = survivors.parts_text();
  if (summary.message.empty() && rank_.spares() > 0 && survivors.left_waiting())
    summary.message = "a place stayed empty though a spare was there: none of its neighbours lived, to give it a model";
  return summary;
}

RankResult Endings::result() const {
  const Parameters& replica = rank_.model.replica();
  return {.times = times_,
          .iterations = rank_.trainer->iterations_done(),
          .replica_hash = replica_hash(fetched(*replica.device, replica.values.span())),
          .shares = measures_of(rank_.participant.exchange()).shares(),
          .rank = rank_.place()};
}

Summary Endings::unused() {
  rank_.training = false;
  if (const int signal = rank_.stop.received(); signal != 0) {
    rank_.participant.communication().run([&] { static_cast<void>(rank_.farewell->barrier_within(patience_s)); });
    throw Stopped(signal);
  }
  rank_.survivors.leave();
  if (rank_.options.survived) rank_.options.survived(nullptr);
  return {};
}

/// What is worth most comes first: the launcher may kill the job a second after the signal. That is the checkpoint
/// where all ranks have left after the same iteration, else the replica.
void Endings::stopped(const Stop& stop) {
  rank_.training = false;  // nothing interrupts what follows
  const Stopped reason(stop.signal != 0 ? stop.signal : rank_.stop.received());
  if (stop.together) checkpoints_.write_last();
  rank_.diary.write([this] { rank_.model.save(replica_file(rank_.plan, rank_.process), rank_.run_id); });
  rank_.diary.write_trace();
  bool all_here = false;
  rank_.participant.communication().run([&] {
    all_here = rank_.farewell->barrier_within(patience_s);
    if (all_here && rank_.spares() > 0) rank_.farewell->keep(rank_.first_processes());
  });
  if (all_here && !stop.together) checkpoints_.write_when_settled(stop.in_order);
  checkpoints_.wait();
  Summary summary = rank_.log->summary("stopped", rank_.job_done(), rank_.reports());
  summary.message = reason.what();
  rank_.participant.communication().run([&] {
    if (all_here) return rank_.diary.finish(summary, *rank_.farewell, result(), rank_.reports());
    summary.message += "; not every rank has received the signal";
    if (rank_.reports()) rank_.diary.end(summary);
  });
  if (rank_.reports()) rank_.diary.take_over_folder();
  rank_.diary.give_back_folder();
  throw reason;
}

void Endings::diverged(const DivergenceError& error) {
  Summary summary = rank_.log->summary("diverged", rank_.job_done(), true);
  summary.message = error.what();
  rank_.diary.write_trace();
  rank_.diary.end(summary);
  throw;
}

}  // namespace hearsay

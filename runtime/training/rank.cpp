#include "runtime/training/rank.hpp"

#include <cmath>
#include <numeric>

#include "runtime/training/failure/killed_run.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {

TrainingRank::TrainingRank(mpi::Environment& environment, const RunPlan& of, const TrainOptions& with, std::string id)
    : plan(of),
      options(with),
      process(environment.rank()),
      host(environment.host()),
      run_id(std::move(id)),
      data(load_data(plan.parts())),
      model(started_model(plan.parts(), data, process, environment.rank_on_host())),
      random(options.shares_process),
      batches(
          make_batches(plan.parts(), data, plan.ranks(environment.ranks()), process % plan.ranks(environment.ranks()))),
      length(plan.length(data.train->size(), plan.ranks(environment.ranks()))),
      communicator(
          [this] {
            participant.serve();
            survivors.require_all_alive();
          },
          environment.communicator()),
      agreement(communicator),
      farewell([this] { participant.progress(); }, environment.communicator()),
      participant(
          environment.communicator(), std::make_shared<const Topology>(plan.topology(environment.ranks())),
          *plan.parts().exchange, model.replica(),
          {.iterations_per_epoch = length.iterations_per_epoch,
           .step = plan.parts().optimizer->response(),
           .failure_timeout = failure_timeout(),
           .spares = spares(),
           .may_take = options.may_take,
           .stall_timeout = options.shares_process ? std::chrono::nanoseconds{0} : plan.parts().on_failure.ending(),
           .interrupted = [this] { return interrupted(); }}),
      survivors(participant, communicator),
      evaluator(model, test_set(data), communicator, participant.engine(), participant.ledger()),
      optimizer(plan.parts().optimizer->build(model)) {}

std::vector<int> TrainingRank::first_processes() const {
  std::vector<int> first(static_cast<std::size_t>(participant.topology().ranks()));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

/// Whether waits end. Lockstep ranks end training in the same iteration: until they are there, they go on; a rank that
/// waits for so long waits for somebody who does not come.
bool TrainingRank::interrupted() {
  constexpr std::int64_t patience_ns = 15'000'000'000;
  if (!training || stop.received() == 0) return false;
  if (!ends_together()) return true;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t none = 0;
  // mpirun ends ranks that are left over with SIGTERM, and a second later for good: that may be all there is time for.
  if (signal_seen_ns_.compare_exchange_strong(none, now) && process == 0) {
    std::vector<std::string> unwritten;
    write_if_possible(unwritten, [this] { leave_killed_summary(plan.report().directory); });
  }
  return now - signal_seen_ns_ > patience_ns;
}

/// Alone, nobody dies.
std::chrono::nanoseconds TrainingRank::failure_timeout() const {
  return communicator.size() > 1 ? plan.parts().on_failure.going_on() : std::chrono::nanoseconds{0};
}

void TrainingRank::make_trainer() {
  if (!participant.is_spare() && participant.layer_wise()) {
    model.on_gradient([this](SegmentId s) {
      if (trace) trace->gradient(s, participant.ledger().now());
      random.keep();
      participant.gradient_ready(s);
      random.use();
    });
  }
  trainer = std::make_unique<Trainer>(Trainer::Parts{.participant = participant,
                                                     .loss_and_gradient = [this] { return compute(); },
                                                     .optimizer = *optimizer,
                                                     .learning_rate = *plan.parts().learning_rate,
                                                     .rank = process});
}

/// Forward and backward at x_k. The time that it is to take passes first: no gradient is ready before it is over.
double TrainingRank::compute() {
  if (options.compute_s) participant.compute_for(options.compute_s(trainer->iterations_done()));
  random.use();
  const Batch batch = batches.next();
  const double loss = model.loss_and_gradient(batch);
  random.keep();
  if (!std::isfinite(loss)) require_finite_inputs(batch, process, trainer->iterations_done());
  return loss;
}

void TrainingRank::watch() {
  const ReportOptions& report = plan.report();
  if (!report.trace) return;
  participant.engine().run([&] {
    trace.emplace(
        Trace::Rank{process, participant.topology().ranks(), participant.neighbourhood().neighbours, host, run_id},
        report.trace_iterations, participant.ledger().now());
    participant.ledger().watched_by(&*trace);
  });
}

void TrainingRank::write_trace() {
  if (trace) write([this] { trace->write(plan.report().directory); });
}

void TrainingRank::write(const std::function<void()>& file) {
  if (write_if_possible(not_written, file) || !options.warned) return;
  options.warned(not_written.back());
}

void TrainingRank::collect_problems() {
  for (std::string& problem : log->not_written()) not_written.push_back(std::move(problem));
}

RunLog::Sources TrainingRank::sources() const {
  return {.plan = plan,
          .options = options,
          .topology = participant.topology(),
          .layout = model.replica().layout,
          .ledger = participant.ledger(),
          .length = length,
          .rank = place(),
          .process = process,
          .host = host,
          .run_id = run_id,
          .resumed_at = resumed_at};
}

RankAccount TrainingRank::account() const {
  return {.ledger = participant.ledger(),
          .neighbourhood = participant.neighbourhood(),
          .layout = model.replica().layout,
          .directory = plan.report().directory,
          .not_written = not_written};
}

}  // namespace hearsay

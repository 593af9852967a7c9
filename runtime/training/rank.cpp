#include "runtime/training/rank.hpp"

#include <torch/version.h>
#include <hearsay_version.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>

#include "runtime/training/failure/killed_run.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

/// Of this process.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

RunDescription description(const RunPlan& plan, const TrainOptions& options, const std::string& run_id,
                           const RunLength& length) {
  const RunPlan::Parts& parts = plan.parts();
  return {.report = parts.report,
          .run_id = run_id,
          .command = options.command.empty() ? command_line() : options.command,
          .config_yaml = plan.config_yaml(),
          .versions = {{"hearsay", std::string(full_version)}, {"libtorch", TORCH_VERSION}},
          .seed = parts.seed,
          .iterations = length.iterations,
          .model = parts.task.model_name,
          .dataset = parts.task.dataset_name,
          .exchange = parts.exchange_name};
}

}  // namespace

TrainingRank::TrainingRank(const Job& job, const RunPlan& of, const TrainOptions& with, std::string id)
    : plan(of),
      options(with),
      process(job.rank()),
      host(job.host()),
      run_id(std::move(id)),
      data(load_data(plan.parts())),
      model(started_model(plan.parts(), data, process, job.rank_on_host())),
      random(options.shares_process),
      batches(make_batches(plan.parts(), data, plan.ranks(job.ranks()), process % plan.ranks(job.ranks()))),
      length(plan.length(data.train->size(), plan.ranks(job.ranks()))),
      communicator(job.communicator([this] {
        participant.communication().serve();
        survivors.require_all_alive();
      })),
      agreement(*communicator),
      farewell(job.communicator([this] { participant.communication().progress(); })),
      diary(description(plan, options, run_id, length), *plan.parts().exchange, participant, host, options.warned),
      participant(
          job.transport(), std::make_shared<const Topology>(plan.topology(job.ranks())), *plan.parts().exchange,
          model.replica(),
          {.iterations_per_epoch = length.iterations_per_epoch,
           .failure_timeout = failure_timeout(),
           .spares = spares(),
           .may_take = options.may_take,
           .stall_timeout = options.shares_process ? std::chrono::nanoseconds{0} : plan.parts().on_failure.ending(),
           .interrupted = [this] { return interrupted(); }}),
      survivors(participant, *communicator),
      evaluator(model, test_set(data), *communicator, participant.communication().engine(), participant.ledger()),
      optimizer(plan.parts().optimizer->build(model)) {}

std::vector<int> TrainingRank::first_processes() const {
  std::vector<int> first(static_cast<std::size_t>(participant.edges().topology().ranks()));
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
  return communicator->size() > 1 ? plan.parts().on_failure.going_on() : std::chrono::nanoseconds{0};
}

void TrainingRank::make_trainer() {
  if (participant.spare() == nullptr && participant.exchange().capabilities().layer_wise) {
    model.on_gradient([this](SegmentId s) {
      if (Trace* trace = diary.trace()) trace->gradient(s, participant.ledger().now());
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
  if (options.compute_s) participant.communication().compute_for(options.compute_s(trainer->iterations_done()));
  random.use();
  const Batch batch = batches.next();
  const double loss = model.loss_and_gradient(batch);
  random.keep();
  if (!std::isfinite(loss)) require_finite_inputs(batch, process, trainer->iterations_done());
  return loss;
}

}  // namespace hearsay

#include "runtime/training/rank.hpp"

#include <torch/version.h>
#include <hearsay_version.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>

#include "runtime/training/failure/killed_run.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

/// How this process was started.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

RunDescription description(const Run& run) {
  const RunPlan::Parts& parts = run.plan.parts();
  return {.report = parts.report,
          .run_id = run.id,
          .command = run.options.command.empty() ? command_line() : run.options.command,
          .config_yaml = run.plan.config_yaml(),
          .versions = {{"hearsay", std::string(full_version)}, {"libtorch", TORCH_VERSION}},
          .seed = parts.seed,
          .iterations = run.length.iterations,
          .model = parts.task.model_name,
          .dataset = parts.task.dataset_name,
          .exchange = parts.exchange_name};
}

/// Alone, nobody dies.
std::chrono::nanoseconds failure_timeout(const Run& run, int processes) {
  return processes > 1 ? run.plan.parts().on_failure.going_on() : std::chrono::nanoseconds{0};
}

/// Forward and backward at x_k. The time that it is to take passes first: no gradient is ready before it is over.
double compute(Learner& learner, const Run& run, Participant& participant) {
  const Iteration k = learner.trainer->iterations_done();
  if (run.options.compute_s) participant.communication().compute_for(run.options.compute_s(k));
  learner.random.use();
  const Batch batch = learner.batches.next();
  const double loss = learner.model.loss_and_gradient(batch);
  learner.random.keep();
  if (!std::isfinite(loss)) require_finite_inputs(batch, run.process, k);
  return loss;
}

}  // namespace

Run::Run(const Job& job, const RunPlan& of, const TrainOptions& with, std::string run_id,
         std::optional<Beginning> by_others)
    : plan(of),
      options(with),
      process(job.rank()),
      late(job.late_members()),
      told(std::move(by_others)),
      id(std::move(run_id)),
      data(load_data(plan.parts())),
      length(plan.length(data.train->size(), plan.ranks(job.ranks()))) {}

Learner::Learner(const Job& job, const Run& run)
    : model(started_model(run.plan.parts(), run.data, run.process, job.rank_on_host())),
      random(run.options.shares_process),
      batches(make_batches(run.plan.parts(), run.data, run.plan.ranks(job.ranks()),
                           run.process % run.plan.ranks(job.ranks()))),
      optimizer(run.plan.parts().optimizer->build(model)) {}

Membership::Membership(const Job& job, const Run& run, Parameters& replica)
    : communicator(job.communicator([this] {
        participant.communication().serve();
        survivors.require_all_alive();
      })),
      agreement(*communicator),
      farewell(job.communicator([this] {
        participant.communication().progress();
        survivors.require_all_alive();
      })),
      record{Diary(description(run), *run.plan.parts().exchange, participant, job.host(), run.options.warned),
             std::nullopt},
      participant(job.transport(), std::make_shared<const Topology>(run.plan.topology(job.ranks())),
                  *run.plan.parts().exchange, replica,
                  {.iterations_per_epoch = run.length.iterations_per_epoch,
                   .start_from_rank_0 = !run.is_late(),
                   .failure_timeout = failure_timeout(run, communicator->size() + run.plan.parts().on_failure.joins),
                   .spares = run.spares(),
                   .vacant = run.plan.parts().on_failure.vacant,
                   .others_began = run.told ? std::optional(run.told->clocks_began) : std::nullopt,
                   .may_take = run.options.may_take,
                   .stall_timeout =
                       run.options.shares_process ? std::chrono::nanoseconds{0} : run.plan.parts().on_failure.ending(),
                   .interrupted = [this, &run] { return interrupted(run); }}),
      survivors(participant, *communicator, job.ranks()) {}

std::vector<int> Membership::first_processes(const Run& run) const {
  const int taken = participant.edges().topology().ranks() - run.plan.parts().on_failure.vacant;
  std::vector<int> first(static_cast<std::size_t>(taken));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

/// True where waits are to end. Lockstep ranks end training in the same iteration: until they are there, they go on; a
/// rank that waits for so long waits for somebody who does not come.
bool Membership::interrupted(const Run& run) {
  constexpr std::int64_t patience_ns = 15'000'000'000;
  if (!training || run.stop.received() == 0) return false;
  if (!run.ends_together()) return true;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t none = 0;
  // mpirun ends ranks that are left over with SIGTERM, and a second later for good: that may be all there is time for.
  if (signal_seen_ns_.compare_exchange_strong(none, now) && run.process == 0) {
    std::vector<std::string> unwritten;
    write_if_possible(unwritten, [&run] { leave_killed_summary(run.plan.report().directory); });
  }
  return now - signal_seen_ns_ > patience_ns;
}

void set_trainer(Learner& learner, const Run& run, Membership& membership) {
  Participant& participant = membership.participant;
  if (participant.spare() == nullptr && participant.exchange().capabilities().layer_wise) {
    learner.model.on_gradient([&learner, &membership, &participant](SegmentId s) {
      if (Trace* trace = membership.record.diary.trace()) trace->gradient(s, participant.ledger().now());
      learner.random.keep();
      participant.gradient_ready(s);
      learner.random.use();
    });
  }
  learner.trainer = std::make_unique<Trainer>(
      Trainer::Parts{.participant = participant,
                     .loss_and_gradient = [&learner, &run, &participant] { return compute(learner, run, participant); },
                     .optimizer = *learner.optimizer,
                     .learning_rate = *run.plan.parts().learning_rate,
                     .rank = run.process});
}

}  // namespace hearsay

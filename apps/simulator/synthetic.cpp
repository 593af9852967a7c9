#include "apps/simulator/synthetic.hpp"

#include <limits>
#include <utility>

#include "apps/shared/long_work.hpp"
#include "base/config/config.hpp"
#include "base/random.hpp"
#include "hearsay_version.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/failure/on_failure.hpp"
#include "runtime/failure/survivors.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/report/diary.hpp"

namespace hearsay {
namespace {

/// One rank's replica and its participant.
class SyntheticRank {
 public:
  SyntheticRank(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks);
  Summary operator()();

 private:
  void iterate(Iteration k);
  void draw_gradient(Iteration k);
  void record(Iteration k);
  Iteration train();
  Summary finish(const RankResult& result);
  Summary leave_unused();
  Progression progression(Iteration done) const;
  double seconds() const { return std::chrono::duration<double>(member_.ledger().now() - start_).count(); }

  const mpi::Environment& environment_;
  const SyntheticRun& run_;
  const SyntheticHooks& hooks_;
  const int rank_;
  Parameters replica_;
  mpi::Communicator communicator_;
  Diary diary_;
  Participant member_;
  Survivors survivors_;
  std::function<double(Iteration)> compute_time_;
  std::chrono::nanoseconds start_{};
};

SyntheticRank::SyntheticRank(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks)
    : environment_(environment),
      run_(run),
      hooks_(hooks),
      rank_(environment.rank()),
      replica_(run.simulation.layout()),
      communicator_([this] {
        member_.communication().serve();
        survivors_.require_all_alive();
      }),
      diary_(run.description, *run.exchange, member_, environment.host()),
      member_(environment.transport(), run.topology, *run.exchange, replica_,
              {.step = {.learning_rate = run.simulation.learning_rate},
               .start_from_rank_0 = false,
               .failure_timeout = environment.ranks() > 1 ? run.on_failure.going_on() : std::chrono::nanoseconds{0},
               .spares = run.on_failure.spares,
               .may_take = hooks.may_take}),
      survivors_(member_, communicator_, environment.ranks()),
      compute_time_(run.simulation.compute_time(run.seed, rank_)) {}

void SyntheticRank::draw_gradient(Iteration k) {
  const auto rank = static_cast<std::uint64_t>(rank_);
  Random random(stream_seed(stream_seed(run_.seed, "gradient", rank), "iteration", static_cast<std::uint64_t>(k)));
  for (float& g : replica_.gradients.span()) g = static_cast<float>(random.normal());
}

/// The training loop of runtime/exchange/exchange.hpp.
void SyntheticRank::iterate(Iteration k) {
  member_.start(k);
  draw_gradient(k);
  {
    const PhaseTimer timer(member_.ledger(), Phase::compute);
    member_.communication().compute_for(compute_time_(k));
  }
  member_.learning_rate(run_.simulation.learning_rate);
  member_.finish(k);
  const auto x = replica_.values.span();
  const auto g = replica_.gradients.span();
  const auto rate = static_cast<float>(run_.simulation.learning_rate);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * g[i];
  member_.stepped(k);
  member_.finite().require_so_far();
}

Progression SyntheticRank::progression(Iteration done) const {
  return {.iterations = done,
          .job_iterations = member_.members().job_iterations(done),
          .time_s = seconds(),
          .learning_rate = run_.simulation.learning_rate};
}

void SyntheticRank::record(Iteration k) {
  const Progression now = progression(k + 1);
  const bool last = now.job_iterations >= static_cast<double>(run_.simulation.iterations);
  diary_.iteration(now, std::numeric_limits<double>::quiet_NaN(), last);
  if (Trace* trace = diary_.trace()) trace->iteration(k + 1);
}

/// Asynchronous ranks do all iterations together, fast ones more. Returns how many this rank has done.
Iteration SyntheticRank::train() {
  LongWork work("simulate", "iteration", rank_ == 0);
  const auto all = static_cast<double>(run_.simulation.iterations);
  Iteration k = 0;
  for (; member_.members().job_iterations(k) < all; ++k) {
    work.reached(k, run_.simulation.iterations);
    iterate(k);
    record(k);
  }
  return k;
}

/// Collective, over those who live.
Summary SyntheticRank::finish(const RankResult& result) {
  if (survivors_.may_die())
    member_.settle([this] { communicator_.barrier(); });
  else
    member_.settle();
  const bool reports = survivors_.reports();
  const auto all = static_cast<double>(run_.simulation.iterations);
  Summary total = diary_.summary("finished", {.job_iterations = all}, reports);
  const double began_s = survivors_.began_s(seconds());
  total.ranks_lost = survivors_.lost(began_s);
  total.ranks_joined = survivors_.joined(began_s);
  total.message = survivors_.parts_text();
  diary_.write_trace();
  diary_.finish(total, communicator_, result, reports);
  communicator_.barrier();
  return total;
}

/// Nobody has needed this spare.
Summary SyntheticRank::leave_unused() {
  survivors_.leave();
  hooks_.survived(nullptr);
  return {};
}

Summary SyntheticRank::operator()() {
  diary_.begin(communicator_);
  start_ = member_.ledger().now();
  hooks_.begun();
  if (member_.spare() != nullptr && !member_.spare()->take_over(*run_.exchange)) return leave_unused();
  diary_.open();
  diary_.start_clock();
  diary_.watch();
  const Iteration done = train();
  const RankResult result{.times = {.wall_s = seconds()},
                          .iterations = done,
                          .replica_hash = replica_hash(replica_.values.span()),
                          .shares = measures_of(member_.exchange()).shares(),
                          .rank = member_.edges().rank()};
  if (!survivors_.may_die()) return finish(result);
  Summary total;
  const bool here = survivors_.attempt_together([&] { total = finish(result); });
  survivors_.leave();
  hooks_.survived(here && survivors_.reports() ? &total : nullptr);
  return total;
}

}  // namespace

SyntheticRun read_synthetic_run(Config root, SimulationPlan simulation, int processes, const std::string& command) {
  SyntheticRun run;
  run.simulation = std::move(simulation);
  run.seed = read_seed(root);
  Config exchange = root.section("exchange");
  const std::string exchange_name(chosen_exchange(exchange).name);
  run.exchange = plan_exchange(root);
  const auto topology = plan_topology(root, *run.exchange);
  Config train = root.section("train");
  run.on_failure = read_on_failure(train, *run.exchange);
  Config report = root.section("report");
  const ReportOptions options = read_report_options(report, "simulated-" + exchange_name);
  root.document().throw_if_invalid();
  run.topology = std::make_shared<const Topology>(topology->build(run.on_failure.ranks(processes)));
  run.simulation.settle_failures(processes, run.on_failure);
  run.description = {.report = options,
                     .command = command,
                     .config_yaml = root.document().dump(),
                     .versions = {{"hearsay", std::string(full_version)}},
                     .seed = run.seed,
                     .iterations = run.simulation.iterations,
                     .model = "synthetic",
                     .dataset = "none",
                     .exchange = exchange_name};
  return run;
}

Summary run_synthetic(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks) {
  return SyntheticRank(environment, run, hooks)();
}

}  // namespace hearsay

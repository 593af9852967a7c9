#include "apps/simulator/synthetic.hpp"

#include <limits>
#include <utility>

#include "apps/shared/long_work.hpp"
#include "base/config/seed.hpp"
#include "base/random.hpp"
#include "hearsay_version.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/totals.hpp"
#include "runtime/training/failure/on_failure.hpp"
#include "runtime/training/failure/survivors.hpp"

namespace hearsay {
namespace {

/// What a rank writes on its way; a spare does not before it has a place.
struct Diary {
  Diary(const SyntheticRun& run, int rank, const std::string& host)
      : metrics(run.report.directory, rank, run.run_id), events(open_event_file(run.report, rank, host, run.run_id)) {}
  MetricsWriter metrics;
  std::optional<EventFile> events;
};

/// One rank's replica and its participant.
class SyntheticRank {
 public:
  SyntheticRank(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks);
  Summary operator()();

 private:
  void write_start();
  void iterate(Iteration k);
  void draw_gradient(Iteration k);
  void record(Iteration k);
  Iteration train();
  Summary finish(const RankResult& result);
  Summary leave_unused();
  std::vector<std::string> unwritten();
  Summary summary() const;
  double seconds() const { return std::chrono::duration<double>(member_.ledger().now() - start_).count(); }

  const mpi::Environment& environment_;
  const SyntheticRun& run_;
  const SyntheticHooks& hooks_;
  const int rank_;
  Parameters replica_;
  mpi::Communicator communicator_;
  Participant member_;
  Survivors survivors_;
  std::optional<Diary> diary_;
  std::function<double(Iteration)> compute_time_;
  std::chrono::nanoseconds start_{};
};

SyntheticRank::SyntheticRank(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks)
    : environment_(environment),
      run_(run),
      hooks_(hooks),
      rank_(environment.rank()),
      replica_(run.simulation.layout()),
      communicator_(
          [this] {
            member_.serve();
            survivors_.require_all_alive();
          },
          environment.communicator()),
      member_(environment.communicator(), run.topology, *run.exchange, replica_,
              {.step = {.learning_rate = 1.0},
               .start_from_rank_0 = false,
               .failure_timeout = environment.ranks() > 1 ? run.on_failure.going_on() : std::chrono::nanoseconds{0},
               .spares = run.on_failure.spares,
               .may_take = hooks.may_take}),
      survivors_(member_, communicator_),
      compute_time_(run.simulation.compute_time(run.seed, rank_)) {}

void SyntheticRank::write_start() {
  const auto hosts = gather_texts(communicator_, environment_.host());
  if (rank_ != 0) return;
  write_manifest(run_.report.directory,
                 {.run_id = run_.run_id,
                  .command = run_.command,
                  .config_yaml = run_.config_yaml,
                  .hosts = hosts,
                  .versions = {{"hearsay", std::string(full_version)},
                               {"mpi", mpi::Environment::library_version()},
                               {"compiler", __VERSION__}},
                  .seed = run_.seed,
                  .model = "synthetic",
                  .dataset = "none",
                  .exchange = run_.exchange_name},
                 *run_.topology, replica_.layout);
}

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
    member_.compute_for(compute_time_(k));
  }
  member_.all_gradients_ready();
  member_.learning_rate(run_.simulation.learning_rate);
  member_.finish(k);
  const auto x = replica_.values.span();
  const auto g = replica_.gradients.span();
  const auto rate = static_cast<float>(run_.simulation.learning_rate);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * g[i];
  member_.stepped(k);
}

void SyntheticRank::record(Iteration k) {
  const bool last = member_.job_iterations(k + 1) >= static_cast<double>(run_.simulation.iterations);
  if ((k + 1) % run_.report.every_iterations != 0 && !last) return;
  const auto possible = static_cast<std::uint64_t>(k + 1) * replica_.layout.count() * member_.neighbourhood().sends();
  IterationRecord record{.iteration = k,
                         .epoch = 0.0,
                         .time_s = seconds(),
                         .loss = std::numeric_limits<double>::quiet_NaN(),
                         .totals = member_.counts(),
                         .staleness_max = member_.ledger().staleness_max(),
                         .messages_possible = run_.exchange->laws().along_graph ? possible : 0,
                         .learning_rate = run_.simulation.learning_rate};
  for (const Share& share : member_.exchange().shares()) record.shares.emplace_back(share.name, share.fraction());
  diary_->metrics.write(record);
  if (diary_->events) diary_->events->write(record);
}

Summary SyntheticRank::summary() const {
  Summary summary;
  summary.run_id = run_.run_id;
  summary.ranks = run_.topology->ranks();
  summary.iterations = run_.simulation.iterations;
  summary.parameters = replica_.layout.size();
  summary.segments = replica_.layout.count();
  summary.edges = static_cast<std::uint64_t>(run_.topology->edges_in_use());
  if (rank_ == 0) summary.spectral_gap = run_.topology->spectrum().gap;
  summary.model = "synthetic";
  summary.dataset = "none";
  summary.exchange = run_.exchange_name;
  summary.schedule = schedule_name(run_.exchange->schedule());
  summary.local_steps = run_.exchange->local_steps();
  summary.clock = mpi::clock_name();
  count_possible(summary, run_.exchange->laws().along_graph);
  return summary;
}

/// Asynchronous ranks do all iterations together, fast ones more. Returns how many this rank has done.
Iteration SyntheticRank::train() {
  LongWork work("simulate", "iteration", rank_ == 0);
  const auto all = static_cast<double>(run_.simulation.iterations);
  Iteration k = 0;
  for (; member_.job_iterations(k) < all; ++k) {
    work.reached(k, run_.simulation.iterations);
    iterate(k);
    record(k);
  }
  return k;
}

std::vector<std::string> SyntheticRank::unwritten() {
  std::vector<std::string> problems;
  const auto ask = [&](auto& writer) {
    writer.flush();
    if (auto problem = writer.file().problem(); !problem.empty()) problems.push_back(std::move(problem));
  };
  ask(diary_->metrics);
  if (diary_->events) ask(*diary_->events);
  return problems;
}

/// Collective, over those who live.
Summary SyntheticRank::finish(const RankResult& result) {
  if (survivors_.may_die())
    member_.settle([this] { communicator_.barrier(); });
  else
    member_.settle();
  Summary total = summary();
  const double began_s = survivors_.began_s(seconds());
  total.ranks_lost = survivors_.lost(began_s);
  total.ranks_joined = survivors_.joined(began_s);
  total.message = survivors_.parts_text();
  complete_summary(total, communicator_,
                   {.ledger = member_.ledger(),
                    .neighbourhood = member_.neighbourhood(),
                    .layout = replica_.layout,
                    .directory = run_.report.directory,
                    .not_written = unwritten()},
                   result);
  if (survivors_.reports()) write_if_possible(total.not_written, [&] { write_summary(run_.report.directory, total); });
  communicator_.barrier();
  return total;
}

/// Of a spare that nobody has needed.
Summary SyntheticRank::leave_unused() {
  survivors_.leave();
  hooks_.survived(nullptr);
  return {};
}

Summary SyntheticRank::operator()() {
  write_start();
  communicator_.barrier();
  start_ = member_.ledger().now();
  hooks_.begun();
  if (member_.is_spare() && !member_.take_over(*run_.exchange)) return leave_unused();
  diary_.emplace(run_, rank_, environment_.host());
  if (diary_->events) diary_->events->start_clock();
  const Iteration done = train();
  const RankResult result{.times = {.wall_s = seconds()},
                          .iterations = done,
                          .replica_hash = replica_hash(replica_.values.span()),
                          .shares = member_.exchange().shares(),
                          .rank = member_.rank()};
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
  run.command = command;
  run.seed = read_seed(root);
  Config exchange = root.section("exchange");
  run.exchange_name = chosen_exchange(exchange).name;
  run.exchange = plan_exchange(root);
  const auto topology = plan_topology(root, *run.exchange);
  Config train = root.section("train");
  run.on_failure = read_on_failure(train, *run.exchange);
  Config report = root.section("report");
  run.report = read_report_options(report, "simulated-" + run.exchange_name);
  root.throw_if_invalid();
  run.topology = std::make_shared<const Topology>(topology->build(run.on_failure.ranks(processes)));
  run.simulation.settle_failures(processes, run.on_failure);
  run.config_yaml = root.dump();
  return run;
}

Summary run_synthetic(const mpi::Environment& environment, const SyntheticRun& run, const SyntheticHooks& hooks) {
  return SyntheticRank(environment, run, hooks)();
}

}  // namespace hearsay

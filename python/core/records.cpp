// What a member writes into its run folder: a line every few steps, and at the end the summary.
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "python/core/member.hpp"
#include "runtime/data/metric.hpp"

namespace hearsay::python {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_between(TimePoint from, TimePoint to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

double Member::seconds() const { return seconds_between(first_, last_); }

void Member::record() {
  if (unrecorded_ == 0) return;
  const Exchange& exchange = participant_.exchange();
  const Ledger& ledger = participant_.ledger();
  const Neighbourhood& around = participant_.neighbourhood();
  const bool along_graph = plan_->exchange->laws().along_graph;
  std::vector<std::pair<std::string, double>> shares;
  for (const Share& share : exchange.shares()) shares.emplace_back(share.name, share.fraction());
  std::vector<std::uint64_t> bytes;
  if (!participant_.topology().everybody)
    for (std::size_t edge = 0; edge < ledger.neighbours(); ++edge) bytes.push_back(ledger.edge(edge).bytes());
  const IterationRecord now{
      .iteration = done_ - 1,
      .epoch = epoch(done_),
      .time_s = seconds(),
      .loss = loss_count_ > 0 ? loss_sum_ / static_cast<double>(loss_count_) : unknown,
      .totals = ledger.totals(),
      .staleness_max = ledger.staleness_max(),
      .messages_possible =
          along_graph ? static_cast<std::uint64_t>(done_) * replica_->layout.count() * around.sends() : 0,
      .learning_rate = learning_rate_,
      .shares = std::move(shares),
      .neighbour_bytes = std::move(bytes)};
  metrics_->write(now);
  if (events_) {
    events_->write(now);
    if (plan_->report.segments)
      events_->write_segments(now.iteration, now.time_s, replica_->layout, exchange.norms(), exchange.thresholds());
  }
  loss_sum_ = 0.0;
  loss_count_ = unrecorded_ = 0;
}

Summary Member::own_summary(const std::string& status) const {
  Summary summary;
  summary.status = status;
  summary.run_id = run_id_;
  summary.ranks = ranks();
  summary.iterations = done_;
  summary.epochs = epoch(done_);
  summary.parameters = replica_->layout.size();
  summary.segments = replica_->layout.count();
  summary.edges = static_cast<std::uint64_t>(participant_.topology().edges_in_use());
  if (rank() == 0 || status != "finished") summary.spectral_gap = participant_.topology().spectrum().gap;
  summary.model = plan_->model;
  summary.dataset = plan_->dataset;
  summary.exchange = plan_->exchange_name;
  summary.schedule = schedule_name(plan_->exchange->schedule());
  count_possible(summary, plan_->exchange->laws().along_graph);
  return summary;
}

/// Asynchronous ranks may have made different numbers of steps. Calls MPI.
void Member::note_steps_of_all(Summary& summary) {
  std::vector<double> least{static_cast<double>(done_)}, most = least;
  communicator_.minimum(least);
  communicator_.maximum(most);
  if (least[0] != most[0])
    summary.message = "the ranks made " + std::to_string(static_cast<Iteration>(least[0])) + " to " +
                      std::to_string(static_cast<Iteration>(most[0])) + " steps";
}

/// Rank 0's text. Calls MPI.
std::string Member::shared_with_all(std::string text) {
  std::uint64_t length = text.size();
  communicator_.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
  text.resize(length);
  communicator_.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::string Member::summary() {
  if (in_step_) throw std::runtime_error("member.summary() inside a step; ask between two steps");
  // Said before anything else is waited for: a rank that is in a further step by now would wait for ever.
  participant_.engine().run([this] { departures_.tell(done_); });
  participant_.settle();
  record();
  if (trace_) trace_->write(plan_->report.directory);
  measure_consensus();
  Summary summary = own_summary("finished");
  summary.consensus_distance = consensus_distance_;
  if (evaluation_) {
    const auto measured = [](double x) { return std::isnan(x) ? std::nullopt : std::optional(x); };
    summary.loss_mean_model = measured(evaluation_->loss);
    if (!std::isnan(evaluation_->accuracy))
      summary.take({.metric = accuracy_metric(),
                    .mean_model = evaluation_->accuracy,
                    .rank_worst = evaluation_->accuracy_min,
                    .rank_mean = evaluation_->accuracy_mean});
  }
  const RankResult result{.times = {.wall_s = seconds(), .evaluate_s = participant_.ledger().seconds(Phase::evaluate)},
                          .iterations = done_,
                          .replica_hash = replica_hash(),
                          .shares = participant_.exchange().shares()};
  std::string text;
  participant_.engine().run([&] {
    departures_.forget();  // nobody tells before all have: the sums below wait for everybody
    note_steps_of_all(summary);
    complete_summary(summary, communicator_,
                     {.ledger = participant_.ledger(),
                      .neighbourhood = participant_.neighbourhood(),
                      .layout = replica_->layout,
                      .directory = plan_->report.directory},
                     result);
    if (rank() == 0) {
      write_summary(plan_->report.directory, summary);
      text = contents(plan_->report.directory / "summary.json");
    }
    text = shared_with_all(std::move(text));
  });
  return text;
}

void Member::write_ending(const std::string& status, const std::string& message) {
  Summary summary = own_summary(status);
  summary.message = message;
  if (unrecorded_ > 0) record();
  if (trace_) trace_->write(plan_->report.directory);
  write_summary(plan_->report.directory, summary);
}

}  // namespace hearsay::python

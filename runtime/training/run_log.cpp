#include "runtime/training/run_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.hpp"

namespace hearsay {
namespace {

constexpr double seconds_between_progress = 0.25;

std::uint64_t largest_staleness(const Ledger& ledger) {
  std::uint64_t largest = 0;
  for (std::size_t edge = 0; edge < ledger.neighbours(); ++edge)
    largest = std::max(largest, ledger.staleness(edge).maximum.value());
  return largest;
}

}  // namespace

RunLog::RunLog(const Sources& sources)
    : sources_(sources),
      degree_(sources.topology.neighbourhood(sources.rank).neighbours.size()),
      metrics_(sources.plan.report().directory, sources.rank) {}

void RunLog::start_clock() { start_ = std::chrono::steady_clock::now(); }

double RunLog::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RunLog::iteration(Iteration k, double loss, const Exchange& exchange) {
  const ReportOptions& report = sources_.plan.report();
  const bool last = k + 1 == sources_.length.iterations;
  if (report.segments) metrics_.write_segments(k, exchange.norms(), exchange.thresholds(), exchange.events());
  if (last || (k + 1) % report.every_iterations == 0) record(k, loss, exchange.shares());
  if (!sources_.options.progress || sources_.rank != 0) return;
  if (last || seconds() - last_progress_s_ >= seconds_between_progress) report_progress(k, loss);
}

void RunLog::record(Iteration k, double loss, const std::vector<Share>& shares) {
  std::vector<std::pair<std::string, double>> fractions;
  for (const Share& share : shares) fractions.emplace_back(share.name, share.fraction());
  std::vector<std::uint64_t> neighbour_bytes;
  for (std::size_t edge = 0; edge < degree_; ++edge) neighbour_bytes.push_back(sources_.ledger.edge(edge).bytes());
  metrics_.write(IterationRecord{.iteration = k,
                                 .epoch = sources_.length.epoch(k + 1),
                                 .time_s = seconds(),
                                 .loss = loss,
                                 .totals = sources_.ledger.totals(),
                                 .staleness_max = largest_staleness(sources_.ledger),
                                 .shares = std::move(fractions),
                                 .neighbour_bytes = std::move(neighbour_bytes)});
}

void RunLog::report_progress(Iteration k, double loss) {
  const RunLength& length = sources_.length;
  const LedgerTotals totals = sources_.ledger.totals();
  const double done = static_cast<double>(k + 1);
  const bool neighbours = sources_.plan.parts().exchange->uses_graph();
  const double possible = neighbours ? done * static_cast<double>(sources_.layout.count() * degree_) : 0.0;
  last_progress_s_ = seconds();
  const double rate = done / std::max(last_progress_s_, 1e-9);
  sources_.options.progress(
      {.iteration = k + 1,
       .iterations = length.iterations,
       .epoch = length.epoch(k + 1),
       .epochs = length.epoch(length.iterations),
       .loss = loss,
       .messages_fraction = possible > 0.0 ? static_cast<double>(totals.messages) / possible : 0.0,
       .megabytes_sent = 1e-6 * static_cast<double>(totals.bytes()),
       .iterations_per_second = rate,
       .seconds_left = static_cast<double>(length.iterations - k - 1) / rate});
}

void RunLog::evaluation(Iteration done, double accuracy, double loss, double consensus_distance) {
  if (sources_.rank != 0) return;
  const EvaluationRecord record{.iteration = done,
                                .epoch = sources_.length.epoch(done),
                                .time_s = seconds(),
                                .accuracy_mean_model = accuracy,
                                .loss_mean_model = loss,
                                .consensus_distance = consensus_distance};
  metrics_.write(record);
  if (sources_.options.evaluated) sources_.options.evaluated(record);
}

Summary RunLog::summary(const std::string& status, Iteration done) const {
  const RunPlan::Parts& plan = sources_.plan.parts();
  Summary summary;
  summary.status = status;
  summary.ranks = sources_.topology.ranks();
  summary.iterations = done;
  summary.epochs = sources_.length.epoch(done);
  summary.parameters = sources_.layout.size();
  summary.segments = sources_.layout.count();
  summary.edges = static_cast<std::uint64_t>(sources_.topology.directed_edges());
  summary.spectral_gap = sources_.topology.spectrum.gap;
  summary.model = plan.task.model_name;
  summary.dataset = plan.task.dataset_name;
  summary.exchange = plan.exchange_name;
  summary.schedule = plan.exchange->schedule() == Schedule::lockstep ? "lockstep" : "asynchronous";
  const auto iterations = static_cast<std::uint64_t>(done);
  const auto ranks = static_cast<std::uint64_t>(summary.ranks);
  const bool neighbours = plan.exchange->uses_graph();
  summary.messages_possible = neighbours ? summary.segments * summary.edges * iterations : 0;
  summary.dense_payload_bytes =
      sizeof(float) * summary.parameters * iterations * (neighbours ? summary.edges : 2 * (ranks - 1));
  return summary;
}

namespace {

void add_shares(Summary& summary, mpi::Communicator& communicator, const std::vector<Share>& shares) {
  std::vector<double> sums;
  for (const Share& share : shares) sums.insert(sums.end(), {share.part, share.whole});
  if (sums.empty()) return;
  communicator.sum(sums);
  for (std::size_t i = 0; i < shares.size(); ++i)
    summary.shares[std::string(shares[i].name)] = Share{{}, sums[2 * i], sums[2 * i + 1]}.fraction();
}

}  // namespace

void complete_summary(Summary& summary, mpi::Communicator& communicator, const RunLog::Sources& sources,
                      const Neighbourhood& neighbourhood, const RankResult& result) {
  const RunTimes& times = result.times;
  const std::uint64_t replica_hash = result.replica_hash;
  add_shares(summary, communicator, result.shares);
  std::vector<double> phases;
  for (std::size_t phase = 0; phase < phase_names.size(); ++phase)
    phases.push_back(sources.ledger.seconds(static_cast<Phase>(phase)) / communicator.size());
  communicator.sum(phases);
  summary.phase_seconds = phases;

  std::vector<double> slowest{times.wall_s, times.wall_s - times.evaluate_s};
  communicator.maximum(slowest);
  summary.wall_time_s = slowest[0];
  summary.time_per_iteration_s = summary.iterations > 0 ? slowest[1] / static_cast<double>(summary.iterations) : 0.0;

  const auto hashes = communicator.gather(std::as_bytes(std::span(&replica_hash, 1)));
  const auto ledgers = communicator.gather(pack_ledger(sources.ledger, neighbourhood));
  if (communicator.rank() != 0) return;
  for (const auto& bytes : hashes) std::memcpy(&summary.replica_hashes.emplace_back(), bytes.data(), bytes.size());
  summary.totals = write_communication(sources.plan.report().directory, ledgers, sources.layout);
}

std::vector<std::string> gather_texts(mpi::Communicator& communicator, const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.gather(std::as_bytes(std::span(text))))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

void require_same_configuration(mpi::Communicator& communicator, const std::string& yaml) {
  const std::vector<std::string> texts = gather_texts(communicator, yaml);
  std::string ranks;
  for (std::size_t rank = 1; rank < texts.size(); ++rank)
    if (texts[rank] != texts[0]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  if (ranks.empty()) return;
  throw ConfigError("the configuration of rank " + ranks +
                    " differs from that of rank 0; give all ranks the same file, --set values and working directory "
                    "(`hearsay train --dump-config` shows what a rank reads)");
}

}  // namespace hearsay

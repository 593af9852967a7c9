#include "runtime/training/run_log.hpp"

#include <torch/version.h>
#include <hearsay_version.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "runtime/mpi/driver.hpp"

namespace hearsay {
namespace {

constexpr std::chrono::milliseconds between_progress{250};

/// Of this process.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

/// Bytes of a file up to its last line that is whole; 0 where it is not here.
std::uint64_t whole_lines(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t bytes = 0, whole = 0;
  for (auto at = std::istreambuf_iterator<char>(in); at != std::istreambuf_iterator<char>(); ++at)
    if (++bytes, *at == '\n') whole = bytes;
  return whole;
}

}  // namespace

RunLog::RunLog(const Sources& sources, Begin begin)
    : sources_(sources),
      sends_(sources.topology.neighbourhood(sources.rank).sends()),
      events_(open_event_file(sources.plan.report(), sources.process, sources.host, sources.run_id)),
      start_(sources.ledger.now()) {
  if (sources.process != sources.rank)
    took_over_ = whole_lines(metrics_file(sources.plan.report().directory, sources.rank));
  if (begin == Begin::anew) metrics_.emplace(sources.plan.report().directory, sources.process, sources.run_id);
}

// What is in the file is what a reader has seen: nothing is written twice, whatever a killed run wrote afterwards.
void RunLog::state(Archive& archive) {
  constexpr std::size_t longest_name = 4096;
  std::uint64_t bytes = 0, event_bytes = 0;
  std::string events;
  if (!archive.loads()) {
    metrics_->flush();
    bytes = took_over_ ? *took_over_ : metrics_->file().size();
    seconds_before_ = seconds();
    start_ = sources_.ledger.now();
    if (events_ && !took_over_) {
      events_->flush();
      events = events_->file().path().filename().string();
      event_bytes = events_->file().size();
    }
  }
  archive.value("seconds of training", seconds_before_);
  archive.value("sum of losses", loss_sum_);
  archive.value("number of losses", loss_count_);
  archive.value("bytes of the metrics", bytes);
  archive.text("file of events", events, longest_name);
  archive.value("bytes of the events", event_bytes);
  if (!archive.loads()) return;
  if (!(seconds_before_ >= 0.0)) archive.refuse("seconds of training", "are " + std::to_string(seconds_before_));
  metrics_.emplace(sources_.plan.report().directory, sources_.process, bytes);
  if (events.find('/') != std::string::npos) archive.refuse("file of events", "is in another folder");
  if (events_ && !events.empty()) cut_file(events_->file().path().parent_path() / events, event_bytes);
}

void RunLog::begin_behind_nothing() {
  std::error_code none;
  const ReportOptions& report = sources_.plan.report();
  std::filesystem::remove(metrics_file(report.directory, sources_.process), none);
  metrics_.emplace(report.directory, sources_.process, sources_.run_id);
}

void RunLog::start_clock(std::optional<std::chrono::nanoseconds> since) {
  start_ = since.value_or(sources_.ledger.now());
  last_progress_ = std::chrono::steady_clock::now();
  if (events_) events_->start_clock();
}

double RunLog::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(sources_.ledger.now() - start_).count();
}

void RunLog::iteration(Iteration k, double job_done, double loss, const Exchange& exchange) {
  const ReportOptions& report = sources_.plan.report();
  const bool last = job_done >= static_cast<double>(sources_.length.iterations);
  if (report.segments) metrics_->write_segments(k, exchange.norms(), exchange.thresholds(), exchange.events());
  loss_sum_ += loss;
  ++loss_count_;
  if (last || (k + 1) % report.every_iterations == 0) write(k, job_done, exchange);
  if (!sources_.options.progress || sources_.process != 0) return;
  if (const auto now = std::chrono::steady_clock::now(); last || now - last_progress_ >= between_progress) {
    last_progress_ = now;
    report_progress(k, job_done, loss);
  }
}

void RunLog::last_iteration(Iteration k, double job_done, const Exchange& exchange) {
  if (loss_count_ > 0) write(k, job_done, exchange);
}

void RunLog::write(Iteration k, double job_done, const Exchange& exchange) {
  const double mean_loss = std::exchange(loss_sum_, 0.0) / static_cast<double>(std::exchange(loss_count_, 0));
  const IterationRecord now = record(k, job_done, mean_loss, exchange.shares());
  metrics_->write(now);
  if (events_) {
    events_->write(now);
    if (sources_.plan.report().segments)
      events_->write_segments(k, now.time_s, sources_.layout, exchange.norms(), exchange.thresholds());
  }
  warn_once();
}

void RunLog::warn_once() {
  if (warned_ || metrics_->file().problem().empty()) return;
  warned_ = true;
  if (sources_.options.warned)
    sources_.options.warned("cannot be written any more: " + metrics_->file().problem() + "; training goes on");
}

std::vector<std::string> RunLog::not_written() {
  std::vector<std::string> problems;
  const auto ask = [&](auto& writer) {
    writer.flush();
    if (auto problem = writer.file().problem(); !problem.empty()) problems.push_back(std::move(problem));
  };
  ask(*metrics_);
  if (events_) ask(*events_);
  return problems;
}

IterationRecord RunLog::record(Iteration k, double job_done, double loss, const std::vector<Share>& shares) const {
  std::vector<std::pair<std::string, double>> fractions;
  for (const Share& share : shares) fractions.emplace_back(share.name, share.fraction());
  const RunLength& length = sources_.length;
  const RunPlan::Parts& plan = sources_.plan.parts();
  const auto done = static_cast<std::uint64_t>(k + 1);
  return {.iteration = k,
          .epoch = length.epoch(job_done),
          .time_s = seconds(),
          .loss = loss,
          .totals = sources_.ledger.totals(),
          .staleness_max = sources_.ledger.staleness_max(),
          .messages_possible = plan.exchange->laws().along_graph ? done * sources_.layout.count() * sends_ : 0,
          .learning_rate = plan.learning_rate->at(length.epoch(job_done - 1), length.epoch(length.iterations)),
          .shares = std::move(fractions),
          .neighbour_bytes = neighbour_bytes()};
}

std::vector<std::uint64_t> RunLog::neighbour_bytes() const {
  std::vector<std::uint64_t> bytes;
  if (sources_.topology.everybody) return bytes;
  for (std::size_t edge = 0; edge < sources_.ledger.neighbours(); ++edge)
    bytes.push_back(sources_.ledger.edge(edge).bytes());
  return bytes;
}

void RunLog::report_progress(Iteration k, double job_done, double loss) {
  const RunLength& length = sources_.length;
  const LedgerTotals totals = sources_.ledger.totals();
  const double done = static_cast<double>(k + 1);
  const bool neighbours = sources_.plan.parts().exchange->laws().along_graph;
  const double possible = neighbours ? done * static_cast<double>(sources_.layout.count() * sends_) : 0.0;
  const double rate = job_done / std::max(seconds(), 1e-9);  // of all parts of the run
  sources_.options.progress(
      {.iteration = std::min(static_cast<Iteration>(job_done), length.iterations),
       .iterations = length.iterations,
       .epoch = std::min(length.epoch(job_done), length.epoch(length.iterations)),
       .epochs = length.epoch(length.iterations),
       .loss = loss,
       .messages_fraction = possible > 0.0 ? static_cast<double>(totals.messages) / possible : 0.0,
       .megabytes_sent = 1e-6 * static_cast<double>(totals.bytes()),
       .iterations_per_second = rate,
       .seconds_left = std::max(0.0, static_cast<double>(length.iterations) - job_done) / rate});
}

void RunLog::evaluation(double job_done, double time_s, const std::vector<MetricValue>& metrics, double loss,
                        double consensus_distance) {
  const EvaluationRecord record{.iteration = static_cast<Iteration>(job_done),
                                .epoch = sources_.length.epoch(job_done),
                                .time_s = time_s,
                                .loss_mean_model = loss,
                                .consensus_distance = consensus_distance,
                                .metrics = metrics};
  metrics_->write(record);
  if (events_) events_->write(record);
  if (sources_.options.evaluated) sources_.options.evaluated(record);
}

Summary RunLog::summary(const std::string& status, double job_done, bool reports) const {
  const RunPlan::Parts& plan = sources_.plan.parts();
  Summary summary;
  summary.run_id = sources_.run_id;
  summary.resumed_at = sources_.resumed_at;
  summary.status = status;
  summary.ranks = sources_.topology.ranks();
  summary.iterations = static_cast<Iteration>(job_done);
  summary.epochs = sources_.length.epoch(job_done);
  summary.parameters = sources_.layout.size();
  summary.segments = sources_.layout.count();
  summary.edges = static_cast<std::uint64_t>(sources_.topology.edges_in_use());
  if (sources_.rank == 0 || status == "diverged" || reports)  // whose summary is written
    summary.spectral_gap = sources_.topology.spectrum().gap;
  summary.model = plan.task.model_name;
  summary.dataset = plan.task.dataset_name;
  summary.exchange = plan.exchange_name;
  summary.schedule = schedule_name(plan.exchange->schedule());
  summary.local_steps = plan.exchange->local_steps();
  summary.clock = mpi::clock_name();
  count_possible(summary, plan.exchange->laws().along_graph);
  return summary;
}

void write_start(const RunLog::Sources& sources, const std::vector<std::string>& hosts) {
  const RunPlan::Parts& plan = sources.plan.parts();
  write_manifest(plan.report.directory,
                 {.run_id = sources.run_id,
                  .command = sources.options.command.empty() ? command_line() : sources.options.command,
                  .config_yaml = sources.plan.config_yaml(),
                  .hosts = hosts,
                  .versions = {{"hearsay", std::string(full_version)},
                               {"mpi", mpi::Environment::library_version()},
                               {"libtorch", TORCH_VERSION},
                               {"compiler", __VERSION__}},
                  .seed = plan.seed,
                  .iterations = sources.length.iterations,
                  .model = plan.task.model_name,
                  .dataset = plan.task.dataset_name,
                  .exchange = plan.exchange_name,
                  .resumed_at = sources.resumed_at},
                 sources.topology, sources.layout);
}

}  // namespace hearsay

#include "runtime/report/diary.hpp"

#include <chrono>
#include <cmath>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/regular_file.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm fields{};
  gmtime_r(&now, &fields);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields)};
}

/// [[i, j, w_ij], …] with i < j; none where everybody may talk to everybody, which says it all.
Json edges_of(const Topology& topology) {
  Json edges = Json::array();
  if (topology.everybody) return edges;
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    for (std::size_t e = 0; e < row.neighbours.size(); ++e) {
      if (topology.directed() ? row.hears(e) : i < row.neighbours[e])
        edges.push_back({i, row.neighbours[e], row.weights[e]});
    }
  }
  return edges;
}

Json topology_json(const Topology& topology) {
  const Spectrum& spectrum = topology.spectrum();
  return {{"graph", topology.graph_name},
          {"weights", topology.weights_name},
          {"directed", topology.directed()},
          {"directed_edges", topology.directed_edges()},
          {"second_eigenvalue", json_number(spectrum.second)},
          {"smallest_eigenvalue", json_number(spectrum.smallest)},
          {"contraction", json_number(spectrum.contraction)},
          {"spectral_gap", json_number(spectrum.gap)},
          {"everybody", topology.everybody},
          {"edges", edges_of(topology)}};
}

Json segments_json(const Layout& layout) {
  Json segments = Json::array();
  for (const Segment& s : layout.segments()) {
    segments.push_back({{"name", s.name}, {"shape", s.shape}, {"offset", s.offset}, {"length", s.length}});
  }
  return segments;
}

/// Bytes of a file up to its last line that is whole; 0 where it is not here.
std::uint64_t whole_lines(const std::filesystem::path& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 32;
  std::error_code none;
  return std::filesystem::exists(path, none) ? file_text(path, most_bytes).rfind('\n') + 1 : 0;
}

}  // namespace

void write_manifest(const std::filesystem::path& directory, const Manifest& manifest, const Topology& topology,
                    const Layout& layout) {
  const Json json{{"schema_version", report_schema_version},
                  {"run_id", manifest.run_id},
                  {"command", manifest.command},
                  {"started_utc", utc_now()},
                  {"ranks", topology.ranks()},
                  {"hosts", manifest.hosts},
                  {"versions", manifest.versions},
                  {"seed", manifest.seed},
                  {"iterations", manifest.iterations},
                  {"resumed_at_iterations", manifest.resumed_at},
                  {"model", manifest.model},
                  {"dataset", manifest.dataset},
                  {"exchange", manifest.exchange},
                  {"parameters", layout.size()},
                  {"segments", segments_json(layout)},
                  {"topology", topology_json(topology)},
                  {"config_yaml", manifest.config_yaml}};
  // In this order: a config.yaml without a manifest is not a run's.
  write_file(directory / "manifest.json", dumped(json, 2) + "\n");
  const std::string run = manifest.run_id.empty() ? "" : "# run " + manifest.run_id + "\n";
  write_file(directory / "config.yaml", run + manifest.config_yaml);
}

Diary::Diary(RunDescription run, const ExchangePlan& plan, Participant& participant, std::string host, Warned warned)
    : run_(std::move(run)), plan_(plan), participant_(participant), host_(std::move(host)), warned_(std::move(warned)) {
  run_.versions["mpi"] = mpi::Environment::library_version();
  run_.versions["compiler"] = __VERSION__;
}

void Diary::open() {
  reopen();
  metrics_.emplace(directory(), participant_.members().process(), run_.run_id);
}

void Diary::reopen() {
  sends_ = participant_.edges().topology().neighbourhood(participant_.edges().rank()).sends();
  if (participant_.members().process() != participant_.edges().rank())
    took_over_ = whole_lines(metrics_file(directory(), participant_.edges().rank()));
  if (auto file = open_event_file(run_.report, participant_.members().process(), host_, run_.run_id))
    events_.emplace(std::move(*file));
}

void Diary::begin_anew() {
  std::error_code none;
  std::filesystem::remove(metrics_file(directory(), participant_.members().process()), none);
  metrics_.emplace(directory(), participant_.members().process(), run_.run_id);
}

void Diary::begin(Communicator& communicator, const std::vector<Iteration>& resumed_at) {
  resumed_at_ = resumed_at;
  const std::vector<std::string> hosts = gather_texts(communicator, host_);
  if (participant_.members().process() == 0)
    write_manifest(directory(),
                   {.run_id = run_.run_id,
                    .command = run_.command,
                    .config_yaml = run_.config_yaml,
                    .hosts = hosts,
                    .versions = run_.versions,
                    .seed = run_.seed,
                    .iterations = run_.iterations,
                    .model = run_.model,
                    .dataset = run_.dataset,
                    .exchange = run_.exchange,
                    .resumed_at = resumed_at},
                   participant_.edges().topology(), layout());
  communicator.barrier();
}

void Diary::start_clock() {
  if (events_) events_->start_clock();
}

void Diary::watch() {
  if (!run_.report.trace) return;
  participant_.communication().run([this] {
    trace_.emplace(Trace::Rank{participant_.members().process(), participant_.edges().topology().ranks(),
                               participant_.edges().neighbourhood().neighbours, host_, run_.run_id},
                   run_.report.trace_iterations, participant_.ledger().now());
    participant_.ledger().watched_by(&*trace_);
  });
}

void Diary::iteration(const Progression& now, double loss, bool last) {
  const Measures& measures = measures_of(participant_.exchange());
  if (run_.report.segments)
    metrics_->write_segments(now.iterations - 1, measures.norms(), measures.thresholds(), measures.events());
  ++unrecorded_;
  if (!std::isnan(loss)) {
    loss_sum_ += loss;
    ++loss_count_;
  }
  if (last || now.iterations % run_.report.every_iterations == 0) record(now);
}

void Diary::record(const Progression& now) {
  if (std::exchange(unrecorded_, 0) == 0) return;
  const double losses = std::exchange(loss_sum_, 0.0);
  const auto count = static_cast<double>(std::exchange(loss_count_, 0));
  const IterationRecord record = iteration_record(now, losses / count);  // of none: not a number
  metrics_->write(record);
  if (events_) {
    const Measures& measures = measures_of(participant_.exchange());
    events_->write(record);
    if (run_.report.segments)
      events_->write_segments(record.iteration, record.time_s, layout(), measures.norms(), measures.thresholds());
  }
  warn_of_lost_records();
}

IterationRecord Diary::iteration_record(const Progression& now, double loss) const {
  std::vector<std::pair<std::string, double>> fractions;
  for (const Share& share : measures_of(participant_.exchange()).shares())
    fractions.emplace_back(share.name, share.fraction());
  const auto done = static_cast<std::uint64_t>(now.iterations);
  return {.iteration = now.iterations - 1,
          .epoch = now.epoch,
          .time_s = now.time_s,
          .loss = loss,
          .totals = participant_.ledger().totals(),
          .staleness_max = participant_.ledger().staleness_max(),
          .messages_possible = plan_.laws().along_graph ? done * layout().count() * sends_ : 0,
          .learning_rate = now.learning_rate,
          .shares = std::move(fractions),
          .neighbour_bytes = neighbour_bytes()};
}

std::vector<std::uint64_t> Diary::neighbour_bytes() const {
  std::vector<std::uint64_t> bytes;
  if (participant_.edges().topology().everybody) return bytes;
  const Ledger& ledger = participant_.ledger();
  for (std::size_t edge = 0; edge < ledger.neighbours(); ++edge) bytes.push_back(ledger.edge(edge).bytes());
  return bytes;
}

void Diary::warn_of_lost_records() {
  if (lost_records_ || metrics_->file().problem().empty()) return;
  lost_records_ = true;
  if (warned_) warned_("cannot be written any more: " + metrics_->file().problem() + "; training goes on");
}

void Diary::evaluation(const EvaluationRecord& record) {
  metrics_->write(record);
  if (events_) events_->write(record);
}

void Diary::write(const std::function<void()>& file) {
  std::vector<std::string> problem;
  if (!write_if_possible(problem, file)) note_unwritten(problem.front(), problem.front());
}

void Diary::write_trace() {
  if (trace_) write([this] { trace_->write(directory()); });
}

void Diary::note_unwritten(const std::string& words, const std::string& warning) {
  if (unwritten_.add(words) && warned_) warned_(warning);
}

Unwritten Diary::not_written() {
  Unwritten all = unwritten_;
  const auto ask = [&](auto& writer) {
    if (!writer) return;
    writer->flush();
    if (const std::string problem = writer->file().problem(); !problem.empty()) all.add(problem);
  };
  ask(metrics_);
  ask(events_);
  return all;
}

Summary Diary::summary(const std::string& status, const Progression& now, bool writes) const {
  const Topology& topology = participant_.edges().topology();
  Summary summary;
  summary.run_id = run_.run_id;
  summary.resumed_at = resumed_at_;
  summary.status = status;
  summary.ranks = topology.ranks();
  summary.iterations = static_cast<Iteration>(now.job_iterations);
  summary.epochs = now.epoch;
  summary.parameters = layout().size();
  summary.segments = layout().count();
  summary.edges = static_cast<std::uint64_t>(topology.edges_in_use());
  if (writes) summary.spectral_gap = topology.spectrum().gap;
  summary.model = run_.model;
  summary.dataset = run_.dataset;
  summary.exchange = run_.exchange;
  summary.schedule = schedule_name(plan_.schedule());
  summary.local_steps = plan_.local_steps();
  summary.clock = mpi::clock_name();
  count_possible(summary, plan_.laws().along_graph);
  return summary;
}

void Diary::finish(Summary& summary, Communicator& communicator, const RankResult& result, bool reports) {
  complete_summary(summary, communicator,
                   {.ledger = participant_.ledger(),
                    .neighbourhood = participant_.edges().neighbourhood(),
                    .layout = layout(),
                    .directory = directory(),
                    .not_written = not_written()},
                   result);
  if (reports) write_summary_of(summary);
}

void Diary::end(Summary& summary) {
  summary.not_written = not_written().lines();
  write_summary_of(summary);
}

void Diary::write_summary_of(Summary& summary) {
  if (!write_if_possible(summary.not_written, [&] { write_summary(directory(), summary); }) && warned_)
    warned_(summary.not_written.back());
}

// What is in the file is what a reader has seen: nothing is written twice, whatever a killed run wrote afterwards.
void Diary::state(Archive& archive) {
  constexpr std::size_t longest_name = 4096;
  std::uint64_t bytes = 0, event_bytes = 0;
  std::string events;
  if (!archive.loads()) {
    metrics_->flush();
    bytes = took_over_ ? *took_over_ : metrics_->file().size();
    if (events_ && !took_over_) {
      events_->flush();
      events = events_->file().path().filename().string();
      event_bytes = events_->file().size();
    }
  }
  archive.value("sum of losses", loss_sum_);
  archive.value("number of losses", loss_count_);
  archive.value("bytes of the metrics", bytes);
  archive.text("file of events", events, longest_name);
  archive.value("bytes of the events", event_bytes);
  if (!archive.loads()) return;
  unrecorded_ = loss_count_;
  metrics_.emplace(directory(), participant_.members().process(), bytes);
  if (events.find('/') != std::string::npos) archive.refuse("file of events", "is in another folder");
  if (events_ && !events.empty()) cut_file(events_->file().path().parent_path() / events, event_bytes);
}

}  // namespace hearsay

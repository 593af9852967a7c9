// summary.json: a run in one object.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/regular_file.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

double fraction(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

std::optional<double> optional_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

LedgerTotals totals_from(const Json& json) {
  return {.events = json.at("events"),
          .messages = json.at("messages"),
          .deferred = json.at("deferred"),
          .packets = json.at("packets"),
          .puts = json.at("puts"),
          .payload_bytes = json.at("payload_bytes"),
          .index_bytes = json.at("index_bytes"),
          .header_bytes = json.at("header_bytes"),
          .control_bytes = json.at("control_bytes"),
          .value_events = json.value("value_events", std::uint64_t{0})};  // runs of older versions do not say
}

LostRank lost_rank_from(const Json& json) {
  LostRank lost{.at_s = optional_number(json, "at_s").value_or(std::numeric_limits<double>::quiet_NaN()),
                .iterations = json.at("iterations")};
  const Json& rank = json.at("rank");
  lost.rank = rank.is_null() ? std::nullopt : std::optional(rank.get<int>());
  lost.process = json.value("process", lost.rank.value_or(0));  // runs of older versions do not say
  return lost;
}

/// Runs of older versions have none: their metric is accuracy.
void read_metrics(const Json& json, Summary& summary) {
  const auto number = [](const Json& value) {
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  for (const Json& metric : json.value("metrics", Json::array()))
    summary.metrics.push_back({.metric = metric_from(metric),
                               .mean_model = number(metric.at("mean_model")),
                               .rank_worst = number(metric.at("rank_worst")),
                               .rank_mean = number(metric.at("rank_mean"))});
}

void read_outcome(const Json& json, Summary& summary) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  read_metrics(json, summary);
  if (json.contains("staleness_max_iterations")) {  // runs of older versions do not say
    summary.staleness_mean = optional_number(json, "staleness_mean_iterations");
    summary.staleness_max = optional_number(json, "staleness_max_iterations");
  }
  if (json.contains("staleness_p99_s")) {  // nor do they say this
    summary.staleness_p99 = optional_number(json, "staleness_p99_iterations");
    summary.staleness_median_s = optional_number(json, "staleness_median_s");
    summary.staleness_p99_s = optional_number(json, "staleness_p99_s");
    summary.rank_iterations = {json.at("rank_iterations_min"), json.at("rank_iterations_max")};
    summary.idle_s = json.at("idle_s");
  }
  summary.accuracy_mean_model = optional_number(json, "accuracy_mean_model");
  summary.accuracy_rank_min = optional_number(json, "accuracy_rank_min");
  summary.accuracy_rank_mean = optional_number(json, "accuracy_rank_mean");
  summary.loss_mean_model = optional_number(json, "loss_mean_model");
  summary.consensus_distance = optional_number(json, "consensus_distance").value_or(nan);
  summary.wall_time_s = optional_number(json, "wall_time_s").value_or(nan);
  summary.time_per_iteration_s = optional_number(json, "time_per_iteration_s").value_or(nan);
  for (const char* phase : phase_names) {
    const std::string key = std::string(phase) + "_s";  // runs of older versions know fewer phases
    summary.phase_seconds.push_back(json.contains(key) ? optional_number(json, key.c_str()).value_or(nan) : 0.0);
  }
  for (const Json& lost : json.value("ranks_lost", Json::array()))  // runs of older versions lose none
    summary.ranks_lost.push_back(lost_rank_from(lost));
  for (const Json& joined : json.value("ranks_joined", Json::array()))
    summary.ranks_joined.push_back({.rank = joined.at("rank"),
                                    .process = joined.at("process"),
                                    .at_s = optional_number(joined, "at_s").value_or(nan),
                                    .iterations = joined.at("iterations")});
  for (const Json& hash : json.at("replica_hash")) {
    summary.replica_hashes.push_back(std::stoull(hash.get<std::string>(), nullptr, 16));
  }
}

Summary summary_from(const Json& json) {
  Summary summary;
  json.at("status").get_to(summary.status);
  json.at("message").get_to(summary.message);
  json.at("model").get_to(summary.model);
  json.at("dataset").get_to(summary.dataset);
  json.at("exchange").get_to(summary.exchange);
  json.at("schedule").get_to(summary.schedule);
  summary.local_steps = json.value("local_steps", summary.local_steps);  // runs of older versions do not say
  summary.run_id = json.value("run_id", "");                             // nor do they have this
  summary.not_written = json.value("not_written", summary.not_written);
  summary.resumed_at = json.value("resumed_at_iterations", summary.resumed_at);
  summary.clock = json.value("clock", summary.clock);  // runs of older versions do not say
  json.at("ranks").get_to(summary.ranks);
  json.at("iterations").get_to(summary.iterations);
  json.at("epochs").get_to(summary.epochs);
  json.at("parameters").get_to(summary.parameters);
  json.at("segments").get_to(summary.segments);
  json.at("edges").get_to(summary.edges);
  json.at("spectral_gap").get_to(summary.spectral_gap);
  json.at("messages_possible").get_to(summary.messages_possible);
  summary.dense_payload_bytes =
      json.value("dense_payload_bytes", std::uint64_t{4} * summary.parameters * summary.edges *
                                            static_cast<std::uint64_t>(summary.iterations));
  const Json shares = json.value("shares", Json::object());
  for (const auto& [name, value] : shares.items())
    summary.shares[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  summary.totals = totals_from(json);
  read_outcome(json, summary);
  return summary;
}

constexpr std::size_t most_bytes = std::size_t{1} << 30;  // a hash a rank

Json parsed(const std::filesystem::path& file, const std::string& folder) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) {
    const bool started = std::filesystem::exists(file.parent_path() / "manifest.json", unknown);
    throw DataError(folder + ": no summary.json: " +
                    (started ? "the run is still going on or was killed; a run writes its summary when it ends"
                             : "not a run folder; give the folder that a run has written (report.directory)"));
  }
  try {
    return Json::parse(file_text(file, most_bytes));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(file.string() + ": is not whole JSON (" + error.what() + "); repeat the run");
  }
}

}  // namespace

void append_totals(Json& json, const LedgerTotals& totals) {
  json["events"] = totals.events;
  json["messages"] = totals.messages;
  json["deferred"] = totals.deferred;
  json["packets"] = totals.packets;
  json["puts"] = totals.puts;
  json["bytes_sent"] = totals.bytes();
  json["payload_bytes"] = totals.payload_bytes;
  json["index_bytes"] = totals.index_bytes;
  json["header_bytes"] = totals.header_bytes;
  json["control_bytes"] = totals.control_bytes;
  json["value_events"] = totals.value_events;
}

Json metric_json(const Metric& metric) {
  return {
      {"name", metric.name}, {"better", metric.higher_is_better ? "higher" : "lower"}, {"fraction", metric.fraction}};
}

Metric metric_from(const Json& json) {
  return {.name = json.at("name"),
          .higher_is_better = json.at("better").get<std::string>() == "higher",
          .fraction = json.at("fraction")};
}

void Summary::take(const RunQuality& quality) {
  metrics.push_back(quality);
  if (quality.metric.name != accuracy_metric().name) return;
  accuracy_mean_model = quality.mean_model;
  accuracy_rank_min = quality.rank_worst;
  accuracy_rank_mean = quality.rank_mean;
}

std::optional<RunQuality> Summary::quality() const {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (!metrics.empty()) return metrics.front();
  if (!accuracy_mean_model) return std::nullopt;
  return RunQuality{.metric = accuracy_metric(),
                    .mean_model = *accuracy_mean_model,
                    .rank_worst = accuracy_rank_min.value_or(nan),
                    .rank_mean = accuracy_rank_mean.value_or(nan)};
}

double Summary::messages_fraction() const {
  return fraction(static_cast<double>(totals.messages), static_cast<double>(messages_possible));
}

double Summary::bytes_fraction() const {
  return fraction(static_cast<double>(totals.bytes()), static_cast<double>(dense_payload_bytes));
}

double Summary::hidden_communication_s() const {
  if (phase_seconds.size() != phase_names.size()) return 0.0;
  const auto seconds = [&](Phase phase) { return phase_seconds[static_cast<std::size_t>(phase)]; };
  return std::max(0.0, seconds(Phase::communicate) - seconds(Phase::wait));
}

namespace {

/// Who died, and who came in their places.
void add_departures(Json& json, const Summary& s) {
  json["ranks_lost"] = Json::array();
  for (const LostRank& lost : s.ranks_lost)
    json["ranks_lost"].push_back({{"rank", lost.rank ? Json(*lost.rank) : Json(nullptr)},
                                  {"process", lost.process},
                                  {"at_s", json_number(lost.at_s)},
                                  {"iterations", lost.iterations}});
  json["ranks_joined"] = Json::array();
  for (const JoinedRank& joined : s.ranks_joined)
    json["ranks_joined"].push_back({{"rank", joined.rank},
                                    {"process", joined.process},
                                    {"at_s", json_number(joined.at_s)},
                                    {"iterations", joined.iterations}});
}

}  // namespace

Json summary_json(const Summary& s) {
  Json json{{"schema_version", report_schema_version},
            {"status", s.status},
            {"message", s.message},
            {"run_id", s.run_id},
            {"not_written", s.not_written},
            {"resumed_at_iterations", s.resumed_at},
            {"model", s.model},
            {"dataset", s.dataset},
            {"exchange", s.exchange},
            {"schedule", s.schedule},
            {"local_steps", s.local_steps},
            {"clock", s.clock},
            {"ranks", s.ranks},
            {"iterations", s.iterations},
            {"epochs", json_number(s.epochs)},
            {"parameters", s.parameters},
            {"segments", s.segments},
            {"edges", s.edges},
            {"spectral_gap", json_number(s.spectral_gap)},
            {"accuracy_mean_model", json_number(s.accuracy_mean_model)},
            {"accuracy_rank_min", json_number(s.accuracy_rank_min)},
            {"accuracy_rank_mean", json_number(s.accuracy_rank_mean)},
            {"loss_mean_model", json_number(s.loss_mean_model)},
            {"consensus_distance", json_number(s.consensus_distance)},
            {"messages_possible", s.messages_possible},
            {"dense_payload_bytes", s.dense_payload_bytes},
            {"messages_fraction", json_number(s.messages_fraction())},
            {"bytes_fraction", json_number(s.bytes_fraction())}};
  json["metrics"] = Json::array();
  for (const RunQuality& quality : s.metrics) {
    Json metric = metric_json(quality.metric);
    metric["mean_model"] = json_number(quality.mean_model);
    metric["rank_worst"] = json_number(quality.rank_worst);
    metric["rank_mean"] = json_number(quality.rank_mean);
    json["metrics"].push_back(std::move(metric));
  }
  append_totals(json, s.totals);
  json["wall_time_s"] = json_number(s.wall_time_s);
  json["time_per_iteration_s"] = json_number(s.time_per_iteration_s);
  for (std::size_t phase = 0; phase < phase_names.size(); ++phase) {
    json[std::string(phase_names[phase]) + "_s"] =
        phase < s.phase_seconds.size() ? json_number(s.phase_seconds[phase]) : Json(nullptr);
  }
  json["communicate_hidden_s"] = json_number(s.hidden_communication_s());
  json["staleness_mean_iterations"] = json_number(s.staleness_mean);
  json["staleness_max_iterations"] = json_number(s.staleness_max);
  json["staleness_p99_iterations"] = json_number(s.staleness_p99);
  json["staleness_median_s"] = json_number(s.staleness_median_s);
  json["staleness_p99_s"] = json_number(s.staleness_p99_s);
  json["rank_iterations_min"] = s.rank_iterations.first;
  json["rank_iterations_max"] = s.rank_iterations.second;
  json["idle_s"] = json_number(s.idle_s);
  json["shares"] = Json::object();
  for (const auto& [name, value] : s.shares) json["shares"][name] = json_number(value);
  json["replica_hash"] = Json::array();
  for (const std::uint64_t hash : s.replica_hashes) json["replica_hash"].push_back(hexadecimal(hash));
  add_departures(json, s);
  return json;
}

std::string summary_text(const Summary& summary) { return dumped(summary_json(summary), 2) + "\n"; }

void write_summary(const std::filesystem::path& directory, const Summary& summary) {
  write_file(directory / "summary.json", summary_text(summary));
}

bool write_if_possible(std::vector<std::string>& not_written, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const DataError& error) {
    not_written.emplace_back(error.what());
    return false;
  }
}

Summary read_summary(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "summary.json";
  const Json json = parsed(file, directory.string());
  try {
    const int version = json.at("schema_version");
    if (version != report_schema_version) {
      throw DataError(file.string() + ": schema version " + std::to_string(version) + ", this program reads version " +
                      std::to_string(report_schema_version) + "; use the hearsay that wrote it");
    }
    return summary_from(json);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(file.string() + ": not a summary of a run (" + error.what() + "); repeat the run");
  } catch (const std::logic_error&) {  // std::stoull
    throw DataError(file.string() + ": replica_hash is not a list of hexadecimal numbers; repeat the run");
  }
}

}  // namespace hearsay

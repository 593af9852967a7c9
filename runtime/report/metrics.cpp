// metrics.rankNNNN.jsonl: one JSON object a line, one writer a rank, no communication.
#include <algorithm>
#include <cstdio>
#include <system_error>

#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

Json json_numbers(std::span<const double> values) {
  Json list = Json::array();
  for (const double x : values) list.push_back(json_number(x));
  return list;
}

}  // namespace

std::filesystem::path metrics_file(const std::filesystem::path& directory, int rank) {
  char name[40];
  std::snprintf(name, sizeof name, "metrics.rank%04d.jsonl", rank);
  return directory / name;
}

std::vector<std::pair<int, std::filesystem::path>> metrics_files(const std::filesystem::path& directory, int ranks) {
  std::vector<std::pair<int, std::filesystem::path>> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    const auto rank = number_in_name(entry.path().filename().string(), "metrics.rank", ".jsonl");
    if (rank && *rank < static_cast<std::uint64_t>(std::max(ranks, 0)))
      files.emplace_back(static_cast<int>(*rank), entry.path());
  }
  std::ranges::sort(files);
  return files;
}

double IterationRecord::messages_fraction() const {
  return messages_possible == 0 ? 0.0 : static_cast<double>(totals.messages) / static_cast<double>(messages_possible);
}

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, int rank, const std::string& run_id)
    : file_(metrics_file(directory, rank)), rank_(rank) {
  if (!run_id.empty()) write_line(Json{{"record", "run"}, {"rank", rank}, {"run_id", run_id}}.dump());
}

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, int rank, std::uintmax_t keep)
    : file_(metrics_file(directory, rank), keep), rank_(rank) {}

void MetricsWriter::write(const IterationRecord& record) {
  Json json{{"record", "iteration"},
            {"rank", rank_},
            {"iteration", record.iteration},
            {"epoch", json_number(record.epoch)},
            {"time_s", json_number(record.time_s)},
            {"loss", json_number(record.loss)},
            {"learning_rate", json_number(record.learning_rate)}};
  append_totals(json, record.totals);
  json["messages_possible"] = record.messages_possible;
  json["staleness_max_iterations"] = record.staleness_max;
  json["neighbour_bytes_sent"] = record.neighbour_bytes;
  for (const auto& [name, value] : record.shares) json[name] = json_number(value);
  write_line(json.dump());
}

void MetricsWriter::write(const EvaluationRecord& record) {
  Json json{{"record", "evaluation"},
            {"rank", rank_},
            {"iteration", record.iteration},
            {"epoch", json_number(record.epoch)},
            {"time_s", json_number(record.time_s)},
            {"accuracy_mean_model", nullptr},
            {"loss_mean_model", json_number(record.loss_mean_model)},
            {"consensus_distance", json_number(record.consensus_distance)},
            {"metrics", Json::array()}};
  for (const auto& [metric, value] : record.metrics) {
    if (metric.name == accuracy_metric().name) json["accuracy_mean_model"] = json_number(value);
    json["metrics"].push_back(metric_json(metric));
    json["metrics"].back()["mean_model"] = json_number(value);
  }
  write_line(json.dump());
}

void MetricsWriter::write_segments(Iteration k, std::span<const double> norms, std::span<const double> thresholds,
                                   std::span<const std::uint8_t> events) {
  Json json{{"record", "segments"}, {"rank", rank_}, {"iteration", k}};
  if (!norms.empty()) json["norms"] = json_numbers(norms);
  if (!thresholds.empty()) json["thresholds"] = json_numbers(thresholds);
  if (!events.empty()) json["events"] = std::vector<int>(events.begin(), events.end());
  write_line(json.dump());
}

void MetricsWriter::write_line(const std::string& line) { file_.append(line + "\n"); }

}  // namespace hearsay

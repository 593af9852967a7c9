// metrics.rankNNNN.jsonl: one JSON object a line, one writer a rank, no communication.
#include <cstdio>

#include "runtime/base/error.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

constexpr std::chrono::seconds flush_interval{1};

std::filesystem::path metrics_file(const std::filesystem::path& directory, int rank) {
  char name[40];
  std::snprintf(name, sizeof name, "metrics.rank%04d.jsonl", rank);
  return directory / name;
}

Json json_numbers(std::span<const double> values) {
  Json list = Json::array();
  for (const double x : values) list.push_back(json_number(x));
  return list;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, int rank)
    : file_(metrics_file(directory, rank)),
      out_(file_, std::ios::binary | std::ios::trunc),
      flushed_(std::chrono::steady_clock::now()),
      rank_(rank) {
  if (!out_) throw DataError(file_.string() + ": cannot be opened for writing; every rank must see the run folder");
}

void MetricsWriter::write(const IterationRecord& record) {
  Json json{{"record", "iteration"},
            {"rank", rank_},
            {"iteration", record.iteration},
            {"epoch", json_number(record.epoch)},
            {"time_s", json_number(record.time_s)},
            {"loss", json_number(record.loss)}};
  append_totals(json, record.totals);
  json["staleness_max_iterations"] = record.staleness_max;
  json["neighbour_bytes_sent"] = record.neighbour_bytes;
  for (const auto& [name, value] : record.shares) json[name] = json_number(value);
  write_line(json.dump());
}

void MetricsWriter::write(const EvaluationRecord& record) {
  const Json json{{"record", "evaluation"},
                  {"rank", rank_},
                  {"iteration", record.iteration},
                  {"epoch", json_number(record.epoch)},
                  {"time_s", json_number(record.time_s)},
                  {"accuracy_mean_model", json_number(record.accuracy_mean_model)},
                  {"loss_mean_model", json_number(record.loss_mean_model)},
                  {"consensus_distance", json_number(record.consensus_distance)}};
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

void MetricsWriter::write_line(const std::string& line) {
  out_ << line << '\n';
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ >= flush_interval) {
    out_.flush();
    flushed_ = now;
  }
  if (!out_) throw DataError(file_.string() + ": cannot be written; is the disk full?");
}

}  // namespace hearsay

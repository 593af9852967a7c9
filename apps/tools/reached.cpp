#include "apps/tools/reached.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/regular_file.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {
namespace {

using nlohmann::json;

std::optional<Evaluated> evaluated(const json& record, const Metric& metric) {
  if (record.value("record", "") != "evaluation" || !record.at("time_s").is_number()) return std::nullopt;
  for (const json& entry : record.value("metrics", json::array()))
    if (entry.at("name") == metric.name && entry.at("mean_model").is_number())
      return Evaluated{record.at("time_s"), entry.at("mean_model")};
  return std::nullopt;
}

bool is_at_least(double value, double other, const Metric& metric) {
  return value == other || metric.worst_of(value, other) == other;
}

/// `run` has at least one evaluation.
double best_of(const std::vector<Evaluated>& run, const Metric& metric) {
  double best = run.front().value;
  for (const Evaluated& now : run)
    if (is_at_least(now.value, best, metric)) best = now.value;
  return best;
}

}  // namespace

// By rank 0, or by whoever has taken over its duties.
std::vector<Evaluated> read_evaluations(const std::filesystem::path& directory, const Metric& metric) {
  constexpr std::size_t most_bytes = std::size_t{1} << 32;
  std::vector<Evaluated> run;
  for (const auto& [rank, file] : metrics_files(directory, std::numeric_limits<int>::max())) {
    std::istringstream lines(file_text(file, most_bytes));
    for (std::string line; std::getline(lines, line);) {
      try {
        if (const auto now = evaluated(json::parse(line), metric)) run.push_back(*now);
      } catch (const json::exception&) {  // a line that is not whole is no record
      }
    }
    if (!run.empty()) break;
  }
  std::ranges::stable_sort(run, {}, &Evaluated::time_s);
  return run;
}

std::optional<CommonValue> reached_by_all(std::span<const std::vector<Evaluated>> runs, const Metric& metric) {
  if (std::ranges::any_of(runs, [](const auto& run) { return run.empty(); })) return std::nullopt;
  CommonValue common{.value = best_of(runs.front(), metric), .time_s = {}};
  for (const auto& run : runs) common.value = metric.worst_of(common.value, best_of(run, metric));
  for (const auto& run : runs) {
    const auto first =
        std::ranges::find_if(run, [&](const Evaluated& now) { return is_at_least(now.value, common.value, metric); });
    common.time_s.push_back(first->time_s);
  }
  return common;
}

}  // namespace hearsay

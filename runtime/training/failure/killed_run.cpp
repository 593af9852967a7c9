#include "runtime/training/failure/killed_run.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/regular_file.hpp"

namespace hearsay {
namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = std::size_t{1} << 32;

/// The last whole iteration record; nothing where there is none. A killed rank may have left half a line.
std::optional<json> last_record(const std::filesystem::path& file) {
  std::string text;
  try {
    text = file_text(file, most_bytes);
  } catch (const DataError&) {
    return std::nullopt;  // the rank was killed before it made one
  }
  for (std::size_t end = text.rfind('\n'); end != std::string::npos && end > 0;) {
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    json record = json::parse(text.substr(begin, end - begin), nullptr, false);
    if (record.is_object() && record.value("record", "") == "iteration") return record;
    end = before;
  }
  return std::nullopt;
}

void add_record(Summary& summary, const json& record) {
  LedgerTotals& totals = summary.totals;
  const auto add = [&](std::uint64_t& sum, const char* key) { sum += record.value(key, std::uint64_t{0}); };
  add(totals.events, "events");
  add(totals.messages, "messages");
  add(totals.deferred, "deferred");
  add(totals.packets, "packets");
  add(totals.puts, "puts");
  add(totals.payload_bytes, "payload_bytes");
  add(totals.index_bytes, "index_bytes");
  add(totals.header_bytes, "header_bytes");
  add(totals.control_bytes, "control_bytes");
  add(totals.value_events, "value_events");
  add(summary.messages_possible, "messages_possible");
  summary.wall_time_s = std::max(summary.wall_time_s, record.value("time_s", 0.0));
}

Summary from_manifest(const json& manifest) {
  Summary summary;
  summary.status = "killed";
  summary.run_id = manifest.value("run_id", "");
  summary.resumed_at = manifest.value("resumed_at_iterations", summary.resumed_at);
  summary.ranks = manifest.at("ranks");
  summary.parameters = manifest.at("parameters");
  summary.segments = manifest.at("segments").size();
  summary.model = manifest.at("model");
  summary.dataset = manifest.at("dataset");
  summary.exchange = manifest.at("exchange");
  const json& topology = manifest.at("topology");
  summary.edges = topology.at("directed_edges");
  const json& gap = topology.at("spectral_gap");
  summary.spectral_gap = gap.is_number() ? gap.get<double>() : std::numeric_limits<double>::quiet_NaN();
  return summary;
}

}  // namespace

Summary killed_summary(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "manifest.json";
  try {
    Summary summary = from_manifest(json::parse(file_text(file, most_bytes)));
    const auto files = metrics_files(directory, summary.ranks);
    const bool all = files.size() == static_cast<std::size_t>(summary.ranks);
    Iteration fewest = all ? std::numeric_limits<Iteration>::max() : 0;  // a rank without metrics has done nothing
    for (const auto& [rank, metrics] : files) {
      const auto record = last_record(metrics);
      const Iteration done = record ? record->value("iteration", Iteration{-1}) + 1 : 0;
      summary.rank_iterations.second = std::max(summary.rank_iterations.second, done);
      if (record && done < fewest) summary.epochs = record->value("epoch", 0.0);
      fewest = std::min(fewest, done);
      if (record) add_record(summary, *record);
    }
    summary.iterations = summary.rank_iterations.first = fewest;
    if (fewest == 0) summary.epochs = 0.0;
    summary.message = "the run was killed after iteration " + std::to_string(fewest) +
                      " or later; hearsay train --resume goes on from its newest complete checkpoint";
    return summary;
  } catch (const json::exception& error) {
    throw DataError(file.string() + ": is not a manifest of a run (" + error.what() + ")");
  }
}

bool leave_killed_summary(const std::filesystem::path& directory) {
  std::error_code unknown;
  if (std::filesystem::exists(directory / "summary.json", unknown)) return false;
  write_summary(directory, killed_summary(directory));
  return true;
}

}  // namespace hearsay

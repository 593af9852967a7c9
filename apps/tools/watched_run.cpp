#include "apps/tools/watched_run.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/regular_file.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

double number(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// Change a second since `before`; 0 where no time has passed.
double rate(double now, double before, double seconds) { return seconds > 0.0 ? (now - before) / seconds : 0.0; }

WatchedRank rank_from(const json& record, const WatchedRank& before) {
  WatchedRank now;
  record.at("iteration").get_to(now.iteration);
  now.epoch = number(record.at("epoch"));
  now.time_s = number(record.at("time_s"));
  now.loss = number(record.at("loss"));
  record.at("messages").get_to(now.messages);
  record.at("bytes_sent").get_to(now.bytes_sent);
  record.at("staleness_max_iterations").get_to(now.staleness_max);
  now.neighbour_bytes = record.value("neighbour_bytes_sent", std::vector<std::uint64_t>{});
  const double seconds = now.time_s - before.time_s;
  now.between_records_s = before.iteration < 0 ? 0.0 : seconds;
  now.iterations_per_second = rate(static_cast<double>(now.iteration), static_cast<double>(before.iteration), seconds);
  for (std::size_t edge = 0; edge < now.neighbour_bytes.size(); ++edge) {
    const std::uint64_t old = edge < before.neighbour_bytes.size() ? before.neighbour_bytes[edge] : 0;
    now.neighbour_rates.push_back(
        rate(static_cast<double>(now.neighbour_bytes[edge]), static_cast<double>(old), seconds));
  }
  return now;
}

/// Runs of older versions have accuracy only.
std::optional<MetricValue> quality_from(const json& record) {
  const json metrics = record.value("metrics", json::array());
  if (metrics.empty() && record.at("accuracy_mean_model").is_number())
    return MetricValue{accuracy_metric(), record.at("accuracy_mean_model").get<double>()};
  if (metrics.empty()) return std::nullopt;
  const json& first = metrics.front();
  return MetricValue{
      {.name = first.at("name"), .higher_is_better = first.at("better") == "higher", .fraction = first.at("fraction")},
      number(first.at("mean_model"))};
}

/// The earliest time there is if it is not known.
fs::file_time_type changed(const fs::path& file) {
  std::error_code unknown;
  const fs::file_time_type time = fs::last_write_time(file, unknown);
  return unknown ? fs::file_time_type::min() : time;
}

}  // namespace

WatchedRun::WatchedRun(fs::path directory) : directory_(std::move(directory)) {
  read_manifest();
  poll();
}

void WatchedRun::read_manifest() {
  const fs::path file = directory_ / "manifest.json";
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  std::error_code unknown;
  newest_ = changed(file);
  if (!fs::exists(file, unknown))
    throw DataError(directory_.string() +
                    ": no manifest.json: not a run folder, or the run has not begun; give the folder that `hearsay "
                    "train` writes");
  try {
    const json manifest = json::parse(file_text(file, most_bytes));
    const auto said = manifest.at("ranks").get<std::int64_t>();
    if (said < 1 || said > most_ranks)
      throw std::out_of_range("a run does not have " + std::to_string(said) + " ranks");
    const auto ranks = static_cast<std::size_t>(said);
    title_ = manifest.at("exchange").get<std::string>() + ", " + manifest.at("model").get<std::string>() + " on " +
             manifest.at("dataset").get<std::string>();
    iterations_ = manifest.value("iterations", std::int64_t{0});
    segments_ = manifest.at("segments").size();
    watched_.resize(ranks);
    read_.resize(ranks);
    neighbours_.resize(ranks);
    for (const json& edge : manifest.at("topology").at("edges")) {
      const int i = edge.at(0), j = edge.at(1);
      neighbours_.at(static_cast<std::size_t>(i)).push_back(j);
      neighbours_.at(static_cast<std::size_t>(j)).push_back(i);
    }
    for (auto& list : neighbours_) std::ranges::sort(list);
  } catch (const DataError&) {
    throw;
  } catch (const std::exception& error) {
    throw DataError(file.string() + ": is not a manifest of a run (" + error.what() + ")");
  }
}

void WatchedRun::poll() {
  for (const auto& [rank, file] : metrics_files(directory_, ranks())) read_new_lines(rank, file);
  std::error_code unknown;
  if (fs::exists(directory_ / "summary.json", unknown)) status_ = read_summary(directory_).status;
}

double WatchedRun::silent_s() const {
  const std::chrono::duration<double> silent = fs::file_time_type::clock::now() - newest_;
  return std::max(0.0, silent.count());
}

/// Whole lines only: the last one may be half written.
void WatchedRun::read_new_lines(int rank, const fs::path& file) {
  RegularFile in(file);
  std::uintmax_t& read = read_[static_cast<std::size_t>(rank)];
  if (in.size() < read) read = 0;  // another run has begun here
  std::string fresh(in.size() - read, '\0');
  in.skip(read);
  in.read(std::as_writable_bytes(std::span(fresh)));
  WatchedRank& watched = watched_[static_cast<std::size_t>(rank)];
  const fs::file_time_type heard = changed(file);
  newest_ = std::max(newest_, heard);
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = fresh.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(rank, file, fresh.substr(begin, end - begin));
  read += begin;
  watched.heard = heard;
}

void WatchedRun::take(int rank, const fs::path& file, const std::string& line) {
  try {
    const json record = json::parse(line);
    const std::string kind = record.at("record");
    if (kind == "evaluation") quality_ = quality_from(record);
    if (kind != "iteration") return;
    WatchedRank& watched = watched_[static_cast<std::size_t>(rank)];
    watched = rank_from(record, watched);
    if (rank != 0) return;
    losses_.push_back(watched.loss);
    if (losses_.size() > kept_losses) losses_.pop_front();
  } catch (const json::exception& error) {
    throw DataError(file.string() + ": a line is not a record (" + error.what() +
                    "); was it written by another version?");
  }
}

}  // namespace hearsay

#include "runtime/report/event_file.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "runtime/report/events/encoding.hpp"
#include "runtime/report/files.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_name = "tensorboard", rank_folder_prefix = "rank",
                           file_prefix = "events.out.tfevents.";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

fs::path rank_folder(const fs::path& directory, int rank) {
  char name[24];
  std::snprintf(name, sizeof name, "rank%04d", rank);
  const fs::path folder = directory / folder_name / name;
  std::error_code error;
  fs::create_directories(folder, error);
  for (const fs::path& part : {folder.parent_path(), folder})
    if (!error && !is_own_folder(part)) throw DataError(part.string() + ": is a link, and a run stays in its folder");
  if (error) throw DataError(folder.string() + ": cannot be made (" + error.message() + ")");
  return folder;
}

std::string file_name(double start_s, const std::string& host, const std::string& run_id) {
  char seconds[24];
  std::snprintf(seconds, sizeof seconds, "%010.0f", std::floor(start_s));
  return std::string(file_prefix) + seconds + "." + (host.empty() ? "host" : host) +
         (run_id.empty() ? "" : "." + run_id);
}

/// The folders tensorboard/rankNNNN of a run.
std::vector<fs::path> rank_folders(const fs::path& directory) {
  std::vector<fs::path> folders;
  std::error_code error;
  if (!is_own_folder(directory / folder_name)) return folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / folder_name, error)) {
    const std::string name = entry.path().filename().string();
    if (is_own_folder(entry.path()) && number_in_name(name, rank_folder_prefix, "")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

EventFile::EventFile(const fs::path& directory, int rank, const std::string& host, const std::string& run_id)
    : start_s_(seconds_since_1970()), file_(rank_folder(directory, rank) / file_name(start_s_, host, run_id)) {
  file_.append(framed(encode_file_version(start_s_)));
}

void EventFile::start_clock() { start_s_ = seconds_since_1970(); }

void EventFile::write(const IterationRecord& record) {
  std::vector<Scalar> scalars{{"training/loss", record.loss},
                              {"training/learning_rate", record.learning_rate},
                              {"training/epoch", record.epoch},
                              {"communication/messages_fraction", record.messages_fraction()},
                              {"communication/bytes_sent", static_cast<double>(record.totals.bytes())},
                              {"communication/staleness_max_iterations", static_cast<double>(record.staleness_max)}};
  for (const auto& [name, fraction] : record.shares) scalars.push_back({"algorithm/" + name, fraction});
  write_scalars(record.time_s, record.iteration, scalars);
}

void EventFile::write(const EvaluationRecord& record) {
  std::vector<Scalar> scalars;
  for (const auto& [metric, value] : record.metrics)
    if (metric.name != loss_metric().name) scalars.push_back({"evaluation/" + metric.name + "_mean_model", value});
  scalars.push_back({"evaluation/loss_mean_model", record.loss_mean_model});
  scalars.push_back({"evaluation/consensus_distance", record.consensus_distance});
  write_scalars(record.time_s, record.iteration, scalars);
}

void EventFile::write_segments(Iteration k, double time_s, const Layout& layout, std::span<const double> norms,
                               std::span<const double> thresholds) {
  std::vector<Scalar> scalars;
  for (std::size_t s = 0; s < norms.size(); ++s) scalars.push_back({"norms/" + layout[s].name, norms[s]});
  for (std::size_t s = 0; s < thresholds.size(); ++s)
    scalars.push_back({"thresholds/" + layout[s].name, thresholds[s]});
  if (!scalars.empty()) write_scalars(time_s, k, scalars);
}

void EventFile::write_scalars(double time_s, Iteration step, std::span<const Scalar> scalars) {
  std::vector<Scalar> finite;
  std::copy_if(scalars.begin(), scalars.end(), std::back_inserter(finite),
               [](const Scalar& scalar) { return std::isfinite(scalar.value); });
  file_.append(framed(encode_scalars(start_s_ + time_s, step, finite)));
}

std::optional<EventFile> open_event_file(const ReportOptions& options, int rank, const std::string& host,
                                         const std::string& run_id) {
  if (!options.tensorboard) return std::nullopt;
  return EventFile(options.directory, rank, host, run_id);
}

std::vector<fs::path> find_event_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& folder : rank_folders(directory)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (!is_own_folder(entry.path()) && entry.path().filename().string().starts_with(file_prefix))
        files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void remove_event_folders(const fs::path& directory) {
  std::error_code ignored;  // a folder with other people's files stays
  for (const fs::path& folder : rank_folders(directory)) fs::remove(folder, ignored);
  fs::remove(directory / folder_name, ignored);
}

}  // namespace hearsay

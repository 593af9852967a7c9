// Section `report:` and the run folder itself.
#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/events/encoding.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> single_files{
    "manifest.json", "config.yaml", "summary.json", "communication.csv", "segments.csv", "staleness.csv", "model.pt"};

/// One file a rank, such as metrics.rank0012.jsonl.
struct RankFile {
  std::string_view before, after;
};
constexpr std::array<RankFile, 3> rank_files{
    {{"metrics.rank", ".jsonl"}, {"trace.rank", ".json"}, {"model.rank", ".pt"}}};

bool is_file_of_a_rank(std::string_view name) {
  return std::any_of(rank_files.begin(), rank_files.end(), [&](const RankFile& file) {
    if (name.size() <= file.before.size() + file.after.size()) return false;
    if (!name.starts_with(file.before) || !name.ends_with(file.after)) return false;
    const auto digits = name.substr(file.before.size(), name.size() - file.before.size() - file.after.size());
    return digits.find_first_not_of("0123456789") == std::string_view::npos;
  });
}

bool is_run_file(std::string_view name) {
  if (name.ends_with(".tmp")) {  // FILE.NUMBER.tmp, what write_file leaves when it is killed
    name.remove_suffix(4);
    name = name.substr(0, name.find_last_not_of("0123456789"));
  }
  return is_file_of_a_rank(name) || std::find(single_files.begin(), single_files.end(), name) != single_files.end();
}

/// The files in `directory` that a run writes, by name.
std::vector<fs::path> run_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (!entry.is_directory() && is_run_file(entry.path().filename().string())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const std::vector<fs::path> events = find_event_files(directory);
  files.insert(files.end(), events.begin(), events.end());
  return files;
}

[[noreturn]] void unusable(const fs::path& directory, const std::string& why) {
  throw DataError(directory.string() + ": cannot be used as the run folder (" + why +
                  "); choose another one with --output DIR or report.directory");
}

void require_writable(const fs::path& directory) {
  const fs::path probe = directory / "manifest.json.tmp";  // a name that only runs use
  try {
    write_file(probe, "");
  } catch (const DataError&) {
    unusable(directory, "no file can be written there");
  }
  std::error_code ignored;
  fs::remove(probe, ignored);
}

}  // namespace

ReportOptions read_report_options(Config& report, const std::string& default_name) {
  ReportOptions options;
  options.directory = report.text("directory", "runs/" + default_name,
                                  "the run folder; a relative path starts at the working directory");
  options.every_iterations = report.integer("every_iterations", 50, Range::at_least(1),
                                            "iterations between two iteration records of metrics.rankNNNN.jsonl");
  options.segments = report.flag("segments", false, "record norm, threshold and event of every segment and iteration");
  options.trace = report.flag("trace", false, "write the time line of every rank: trace.rankNNNN.json, for Perfetto");
  options.trace_iterations =
      report.integer("trace_iterations", 200, Range::at_least(0), "iterations at the start that it shows; 0: all");
  options.tensorboard = report.flag(
      "tensorboard", false, "also write every rank's records as TensorBoard's event files: tensorboard/rankNNNN/");
  report.require(
      !options.tensorboard || can_encode_events(), "tensorboard",
      "this hearsay was built without Protobuf and cannot write event files; install Protobuf and its compiler "
      "(Debian: libprotobuf-dev protobuf-compiler), then configure and build again");
  options.overwrite = report.flag("overwrite", false, "replace the run that the folder holds");
  report.require(!options.directory.empty(), "directory", "must name a folder, such as runs/my-run");
  return options;
}

void prepare_run_folder(const ReportOptions& options) {
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error) unusable(options.directory, error.message());
  if (!fs::is_directory(options.directory)) unusable(options.directory, "it is a file");
  const std::vector<fs::path> old = run_files(options.directory);
  if (!old.empty() && !options.overwrite) {
    throw ConfigError(options.directory.string() + " already holds a run (" + old.front().filename().string() +
                      "); replace it with --overwrite or choose another folder with --output DIR");
  }
  for (const fs::path& file : old) {
    if (!fs::remove(file, error) && error) unusable(options.directory, error.message());
  }
  if (!old.empty()) remove_event_folders(options.directory);
  require_writable(options.directory);
}

}  // namespace hearsay

// Section `report:` and the run folder itself.
#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/regular_file.hpp"
#include "runtime/report/checkpoint.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/events/encoding.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/report/json.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> single_files{
    "manifest.json", "config.yaml", "summary.json", "communication.csv", "segments.csv",
    "staleness.csv", "ranks.csv",   "model.pt",     "state_dict.pt",     "vocabulary.txt"};

/// One file a rank, such as metrics.rank0012.jsonl.
struct RankFile {
  std::string_view before, after;
};
constexpr std::array<RankFile, 4> rank_files{
    {{"metrics.rank", ".jsonl"}, {"trace.rank", ".json"}, {"model.rank", ".pt"}, {"snapshots.rank", ".bin"}}};

bool is_file_of_a_rank(std::string_view name) {
  return std::any_of(rank_files.begin(), rank_files.end(),
                     [&](const RankFile& file) { return number_in_name(name, file.before, file.after).has_value(); });
}

/// FILE.hearsay-NUMBER.tmp, what write_file leaves when it is killed, or FILE.NUMBER.tmp of older versions.
bool is_unfinished(std::string_view& name) {
  constexpr std::string_view ending = ".tmp";
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  if (name.size() > run_id_length && find_run_id(name.substr(name.size() - run_id_length)))
    name.remove_suffix(run_id_length);
  else
    name = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (name.ends_with('.')) name.remove_suffix(1);
  return true;
}

bool is_run_file(std::string_view name) {
  static_cast<void>(is_unfinished(name));
  return is_file_of_a_rank(name) || std::find(single_files.begin(), single_files.end(), name) != single_files.end();
}

/// The files in `directory` whose names are those of files that a run writes, by name.
std::vector<fs::path> run_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const bool folder = entry.symlink_status(error).type() == fs::file_type::directory;
    if (!folder && is_run_file(entry.path().filename().string())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const std::vector<fs::path> events = find_event_files(directory);
  files.insert(files.end(), events.begin(), events.end());
  const std::vector<fs::path> checkpoints = find_checkpoint_files(directory / "checkpoints");
  files.insert(files.end(), checkpoints.begin(), checkpoints.end());
  return files;
}

/// What an earlier run has left in a folder, as far as its manifest says.
struct EarlierRun {
  bool has_manifest = false;
  bool has_id = false;  ///< runs of older versions have none: their files go by their names
  std::string config_yaml{};
};

EarlierRun earlier_run(const fs::path& directory) {
  constexpr std::size_t most = std::size_t{1} << 30;
  try {
    const Json manifest = Json::parse(file_text(directory / "manifest.json", most), nullptr, false);
    if (!manifest.is_object() || !manifest.contains("schema_version") || !manifest.contains("command")) return {};
    const auto yaml = manifest.find("config_yaml");
    return {.has_manifest = true,
            .has_id = manifest.contains("run_id"),
            .config_yaml = yaml != manifest.end() && yaml->is_string() ? yaml->get<std::string>() : ""};
  } catch (const DataError&) {
    return {};
  }
}

/// A table without lines has no place for the run's name: nothing was sent.
bool is_heading_only(const fs::path& file) {
  constexpr std::size_t most = 4096;
  std::error_code error;
  if (fs::file_size(file, error) > most || error) return false;
  const std::string text = file_text(file, most);
  return text.ends_with(",run_id\n") && text.find('\n') + 1 == text.size();
}

/// Whether a run has written this file, and nobody has changed it where people do. What has a run's name only, such as
/// a configuration of one's own that is called config.yaml, is not.
bool was_written_by(const EarlierRun& run, const fs::path& file) {
  std::error_code error;
  std::string_view name;
  const std::string full_name = file.filename().string();
  name = full_name;
  if (fs::symlink_status(file, error).type() != fs::file_type::regular) return false;
  if (is_unfinished(name)) return true;                        // nobody else's files are called that
  if (fs::file_size(file, error) == 0 && !error) return true;  // of a run that ended before its first line
  if (name == "config.yaml") {
    const std::string text = file_text(file, std::size_t{1} << 30);
    const std::size_t first = text.find('\n') + 1;
    const bool marked = text.starts_with("# ") && find_run_id(text.substr(0, first));
    return run.has_manifest && (marked ? text.substr(first) : text) == run.config_yaml;
  }
  // Parameters by their names and nothing else: it goes by the model beside it.
  if (name == "state_dict.pt") return was_written_by(run, file.parent_path() / "model.pt");
  if (run.has_manifest && !run.has_id) return true;
  if (name.ends_with(".csv") && is_heading_only(file)) return true;
  return find_run_id(name) || run_id_in_file(file);
}

[[noreturn]] void unusable(const fs::path& directory, const std::string& why) {
  throw DataError(directory.string() + ": cannot be used as the run folder (" + why + ")", another_folder());
}

[[noreturn]] void foreign(const fs::path& file) {
  throw ConfigError(file.string() + ": no run has written this, or it was changed since, and a run would replace it",
                    another_folder(", or move it away"));
}

void make_folder(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) unusable(directory, error.message());
  if (!fs::is_directory(directory, error)) unusable(directory, "it is a file");
}

/// Where checkpoints are written and pruned; event files are written to no link either (event_file.cpp), and only where
/// they are asked for.
void require_no_links(const fs::path& directory) {
  const fs::path checkpoints = directory / "checkpoints";
  std::error_code error;
  std::vector<fs::path> folders{checkpoints};
  if (fs::symlink_status(checkpoints, error).type() == fs::file_type::directory)
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) folders.push_back(entry.path());
  for (const fs::path& folder : folders)
    if (fs::is_symlink(fs::symlink_status(folder, error)))
      throw ConfigError(
          folder.string() + ": is a link, and a run writes and removes in its own folder only",
          Remedy{.program = "remove the link; train.checkpoint.directory is the place for checkpoints elsewhere",
                 .python = "remove the link"});
}

/// Removes the files of an earlier run: all of them, or none and throws.
void clear_folder(const ReportOptions& options) {
  require_no_links(options.directory);
  const std::vector<fs::path> old = run_files(options.directory);
  const EarlierRun run = earlier_run(options.directory);
  for (const fs::path& file : old) {
    if (!was_written_by(run, file)) foreign(file);
    if (!options.overwrite)
      throw ConfigError(
          options.directory.string() + " already holds a run (" + file.filename().string() + ")",
          Remedy{.program =
                     "go on with it with --resume, replace it with --overwrite (report.overwrite: true) or choose "
                     "another folder with --output DIR (report.directory)",
                 .python =
                     "replace it with `report: {overwrite: true}` (or set={'report.overwrite': True}), or choose "
                     "another `report: {directory: …}`; to go on with a training that was stopped, start into another "
                     "folder and give member.load_state_dict what member.state_dict() has saved"});
  }
  for (const fs::path& file : old) {
    std::error_code error;
    if (!fs::remove(file, error) && error) unusable(options.directory, error.message());
  }
  if (old.empty()) return;
  remove_event_folders(options.directory);
  remove_checkpoint_folders(options.directory / "checkpoints");
}

/// The lock says who writes there; the folder is looked at once nobody else does.
RunLock locked(const ReportOptions& options, const std::string& id) {
  make_folder(options.directory);
  RunLock lock(options.directory, id);
  clear_folder(options);
  return lock;
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

void require_one_run(const fs::path& directory) {
  std::string first_id;
  fs::path first;
  for (const fs::path& file : run_files(directory)) {
    const std::string name = file.filename().string();
    if (name.ends_with(".tmp")) continue;
    const auto in_name = find_run_id(name);
    const auto id = in_name ? in_name : run_id_in_file(file);
    if (!id) continue;
    if (first.empty()) {
      first = file;
      first_id = *id;
    } else if (*id != first_id) {
      throw DataError(
          directory.string() + ": files of two runs are mixed: " + first.filename().string() + " is of " + first_id +
              ", " + name + " of " + *id,
          {.program = "train again with --overwrite", .python = "train again with `report: {overwrite: true}`"});
    }
  }
}

RunFolder RunFolder::resumed(const fs::path& directory) {
  constexpr std::size_t most = std::size_t{1} << 30;
  std::string id;
  try {
    const Json manifest = Json::parse(file_text(directory / "manifest.json", most), nullptr, false);
    if (manifest.is_object() && manifest.contains("run_id") && manifest["run_id"].is_string())
      id = find_run_id(manifest["run_id"].get<std::string>()).value_or("");
  } catch (const DataError&) {
  }
  if (id.empty())
    throw ConfigError(directory.string() +
                      ": holds no run (there is no manifest.json with a run's name): name the folder of a run");
  RunLock lock(directory, id);
  require_no_links(directory);
  for (const fs::path& file : run_files(directory))
    if (std::error_code error; fs::symlink_status(file, error).type() != fs::file_type::regular)
      throw ConfigError(file.string() + ": is no plain file, and a run that goes on would write there; move it away");
  return {std::move(id), std::move(lock)};
}

RunFolder RunFolder::shared(const fs::path& directory, const std::string& id) {
  return {id, RunLock::joined(directory, id)};
}

RunFolder::RunFolder(const ReportOptions& options) : id_(new_run_id()), lock_(locked(options, id_)) {}

}  // namespace hearsay

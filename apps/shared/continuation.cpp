#include "apps/shared/continuation.hpp"

#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/regular_file.hpp"
#include "runtime/report/report.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

/// Without the line that names the run, and the one that may differ between its parts.
std::string essence(const std::string& yaml) {
  std::istringstream lines(yaml);
  std::string text, line;
  while (std::getline(lines, line))
    if (!line.starts_with("# ") && !line.starts_with("  overwrite:")) text += line + "\n";
  return text;
}

bool has_finished(const fs::path& directory) {
  std::error_code unknown;
  return fs::exists(directory / "summary.json", unknown) && read_summary(directory).status == "finished";
}

void require_same_configuration(const fs::path& directory, const RunPlan& plan) {
  constexpr std::size_t most_bytes = std::size_t{1} << 24;
  if (essence(file_text(directory / "config.yaml", most_bytes)) == essence(plan.config_yaml())) return;
  throw ConfigError(directory.string() +
                    ": holds a run of another configuration, so there is nothing to continue; replace it with "
                    "--overwrite instead of --continue, choose another folder with --output DIR, or go on with that "
                    "run with --resume");
}

}  // namespace

EarlierPart find_earlier_part(const RunPlan& plan) {
  const fs::path& directory = plan.report().directory;
  std::error_code unknown;
  if (!fs::exists(directory / "manifest.json", unknown) || !fs::exists(directory / "config.yaml", unknown)) return {};
  require_same_configuration(directory, plan);
  return {.run_id = RunFolder::resumed(directory).id(), .finished = has_finished(directory)};
}

Continuation continuation(const Job& job, const RunPlan& plan, const EarlierPart& found) {
  std::vector<double> state{found.run_id.empty() ? 0.0 : 1.0, found.finished ? 1.0 : 0.0};
  job.communicator()->maximum(state);
  if (state[0] == 0.0) return Continuation::start;
  if (state[1] > 0.0) return Continuation::finished;
  return has_complete_checkpoint(job, plan, found.run_id) ? Continuation::resume : Continuation::start;
}

}  // namespace hearsay

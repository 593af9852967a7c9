// compare RUN RUN … [--json]
#include "apps/shared/text.hpp"
#include "apps/tools/comparison.hpp"
#include "apps/tools/tools.hpp"
#include "base/text/foreign_text.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

Json comparison_json(const std::vector<ComparedRun>& runs) {
  const std::vector<std::string> names = run_names(runs);
  const LedgerTotals& baseline = runs[0].summary.totals;
  std::vector<std::vector<Evaluated>> evaluations;
  for (const ComparedRun& run : runs) evaluations.push_back(run.evaluations);
  const auto common = reached_by_all(evaluations, metric_of(runs[0].summary));
  Json list = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LedgerTotals& totals = runs[i].summary.totals;
    Json entry{{"run", names[i]},
               {"directory", runs[i].directory.string()},
               {"messages_of_baseline", json_number(fraction_of(totals.messages, baseline.messages))},
               {"bytes_of_baseline", json_number(fraction_of(totals.bytes(), baseline.bytes()))}};
    entry["reached_after_s"] = common ? json_number(common->time_s[i]) : Json(nullptr);
    entry["summary"] = summary_json(runs[i].summary);
    list.push_back(std::move(entry));
  }
  return {{"schema_version", report_schema_version},
          {"baseline", names[0]},
          {"reached_by_all", common ? json_number(common->value) : Json(nullptr)},
          {"runs", std::move(list)},
          {"notes", comparison_notes(runs)}};
}

}  // namespace

std::string compare_text(const std::vector<std::filesystem::path>& directories, bool json) {
  std::vector<ComparedRun> runs;
  for (const auto& directory : directories) {
    runs.push_back({.directory = directory, .summary = read_summary(directory)});
    require_one_run(directory);
    runs.back().evaluations = read_evaluations(directory, metric_of(runs.front().summary));
  }
  if (json) return dumped(comparison_json(runs), 2, true) + "\n";
  std::string text = comparison_table(runs);
  if (const std::string times = time_table(runs); !times.empty()) text += "\n" + times;
  const auto notes = comparison_notes(runs);
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += "note: " + wrapped(shown(note), 94, 6) + "\n";
  return shown_lines(text);
}

}  // namespace hearsay

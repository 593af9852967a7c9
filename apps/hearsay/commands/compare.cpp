// hearsay compare RUN RUN … [--json]
#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/views/comparison.hpp"
#include "apps/shared/text.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

Json comparison_json(const std::vector<ComparedRun>& runs) {
  const std::vector<std::string> names = run_names(runs);
  const LedgerTotals& baseline = runs[0].summary.totals;
  Json list = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LedgerTotals& totals = runs[i].summary.totals;
    Json entry{{"run", names[i]},
               {"directory", runs[i].directory.string()},
               {"messages_of_baseline", json_number(fraction_of(totals.messages, baseline.messages))},
               {"bytes_of_baseline", json_number(fraction_of(totals.bytes(), baseline.bytes()))}};
    entry["summary"] = summary_json(runs[i].summary);
    list.push_back(std::move(entry));
  }
  return {{"schema_version", report_schema_version},
          {"baseline", names[0]},
          {"runs", std::move(list)},
          {"notes", comparison_notes(runs)}};
}

}  // namespace

int compare_command(const std::vector<std::filesystem::path>& directories, bool json) {
  std::vector<ComparedRun> runs;
  for (const auto& directory : directories) {
    runs.push_back({directory, read_summary(directory)});
    require_one_run(directory);
  }
  if (json) {
    std::printf("%s\n", comparison_json(runs).dump(2).c_str());
    return 0;
  }
  std::printf("%s", comparison_table(runs).c_str());
  const auto notes = comparison_notes(runs);
  if (!notes.empty()) std::printf("\n");
  for (const std::string& note : notes) std::printf("note: %s\n", wrapped(note, 94, 6).c_str());
  return 0;
}

}  // namespace hearsay

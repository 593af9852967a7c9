#pragma once
// Runs side by side: a table in which nothing is hidden that would make the comparison unfair.
#include <filesystem>
#include <string>
#include <vector>

#include "apps/tools/reached.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {

struct ComparedRun {
  std::filesystem::path directory;
  Summary summary;
  std::vector<Evaluated> evaluations{};  ///< by what the first run is judged by
};

/// At most 100 columns; the first run is the baseline.
std::string comparison_table(const std::vector<ComparedRun>& runs);
/// After how long each run reaches what all of them reach; empty where one has not been evaluated.
std::string time_table(const std::vector<ComparedRun>& runs);
/// What a run is judged by; accuracy where it does not say.
Metric metric_of(const Summary& run);
/// What a reader of the table must know: runs that did not finish, and in what runs differ from the baseline.
/// Sentences.
std::vector<std::string> comparison_notes(const std::vector<ComparedRun>& runs);
/// `part` of `whole`; NaN where the whole is nothing.
double fraction_of(std::uint64_t part, std::uint64_t whole);
/// Short names that tell the runs apart: the folder's name, or the path where two folders have the same name.
std::vector<std::string> run_names(const std::vector<ComparedRun>& runs);

}  // namespace hearsay

#pragma once
// What `hearsay train` prints, and `hearsay simulate` as well.
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/training/dry_run.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {

std::string dry_run_text(const DryRun& run, const Topology& topology);
/// `saved_model`: whether the run has written the averaged model.
std::string outcome_text(const Summary& summary, const std::filesystem::path& directory, bool saved_model);

/// What a user should know before the run: sentences.
std::vector<std::string> warnings_of(const RunPlan::Parts& plan, const Topology& topology);
/// On stderr, a line each: what a user should know of an exchange before the run.
void say_warnings(const ExchangePlan& exchange, const Topology& topology);

/// Throws DataError that names them if files of the run could not be written: the run is fine, its report is not.
void require_all_written(const Summary& summary);

}  // namespace hearsay

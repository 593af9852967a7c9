#pragma once
// What `hearsay train` prints on stdout.
#include <filesystem>
#include <string>

#include "runtime/training/dry_run.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {

std::string dry_run_text(const DryRun& run, const Topology& topology);
std::string outcome_text(const Summary& summary, const std::filesystem::path& directory);

}  // namespace hearsay

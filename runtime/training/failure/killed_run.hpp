#pragma once
// What is to be said of a run that was killed: it had no time to say it itself. No LibTorch in this header.
#include <filesystem>
#include <string>

#include "runtime/report/report.hpp"

namespace hearsay {

/// The summary, status `killed`, as far as manifest.json and the metrics in the folder tell: iterations are those of
/// the last record of the rank that is furthest behind, counters are sums over the last records of all ranks. Throws
/// DataError if there is no (whole) manifest.
Summary killed_summary(const std::filesystem::path& directory);

/// Writes it if the folder has no summary, and says whether it did. The caller holds the folder (RunFolder). Throws
/// DataError.
bool leave_killed_summary(const std::filesystem::path& directory);

}  // namespace hearsay

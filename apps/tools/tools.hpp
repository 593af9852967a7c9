#pragma once
// What the program `hearsay` and `python3 -m hearsay` both say, as texts of whole lines. No LibTorch here.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/tools/catalogue.hpp"

namespace hearsay {

/// All tables, or the one called `wanted`. Throws ConfigError.
std::string list_text(const Catalogue& catalogue, const std::optional<std::string>& wanted);
/// Equation, keys, defaults, ranges, cost and citation of what bears these names. Throws ConfigError.
std::string describe_text(const Catalogue& catalogue, const std::vector<std::string>& names);
/// Whole tables, those called `kinds`, for a page in Markdown: name, equation, cost, citation. Throws ConfigError.
std::string markdown_text(const Catalogue& catalogue, const std::vector<std::string>& kinds);
/// The runs in one table, or as JSON; the first one is the baseline. Throws DataError.
std::string compare_text(const std::vector<std::filesystem::path>& directories, bool json);
/// Versions of Hearsay, MPI and these `libraries` (name, version), the compiler and the build.
std::string version_text(const std::vector<std::pair<std::string, std::string>>& libraries);

}  // namespace hearsay

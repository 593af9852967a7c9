#pragma once
// The list of a folder's algorithms: names, what `hearsay list` and `hearsay describe` say of them, and how to make
// one. A folder has exactly one table; the contract tests run over it, so an entry is tested without a test of its own.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.hpp"

namespace hearsay {

/// One algorithm. The text fields are what `hearsay describe NAME` prints; `make` reads and checks the algorithm's own
/// keys from its section of the configuration, each with a default, so that `{name: x}` alone is always valid.
template <class Interface, class... Context>
struct Entry {
  std::string_view name;      ///< as in YAML; equal to the file's name
  std::string_view summary;   ///< one line
  std::string_view equation;  ///< in the code's own names
  std::string_view cost;      ///< messages, bytes, flops, memory
  std::string_view citation;  ///< key and place, e.g. "ghosh2021eventgrad, eq. (6)"
  std::unique_ptr<Interface> (*make)(Config& config, Context... context);
};

/// Finds the entry that `config`'s key `name` asks for (default `fallback`). An unknown name is recorded as an error at
/// its place in the file, with the known names and `remedy`, and the fallback's entry is returned so that reading can
/// go on.
template <class Interface, class... Context>
const Entry<Interface, Context...>& chosen_entry(std::span<const Entry<Interface, Context...>> table, Config& config,
                                                 std::string_view fallback, std::string_view meaning,
                                                 std::string_view remedy = "") {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  const std::string name = config.choice("name", fallback, names, meaning, remedy);
  return *std::find_if(table.begin(), table.end(), [&](const auto& entry) { return entry.name == name; });
}

}  // namespace hearsay

#pragma once
// Loads a data set by its name in the table and a YAML text, as the program does.
#include <algorithm>
#include <string>
#include <string_view>

#include "apps/datasets/datasets.hpp"

namespace hearsay::test {

inline DataSet load_set(std::string_view name, const std::string& yaml, std::uint64_t seed = 7) {
  Config config = Config::from_text(yaml);
  const auto table = datasets();
  const auto entry = std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.name == name; });
  const auto source = entry->make(config, seed);
  config.document().throw_if_invalid();
  return source->load();
}

/// A set of images.
inline ImageData load(std::string_view name, const std::string& yaml, std::uint64_t seed = 7) {
  return images_of(load_set(name, yaml, seed));
}

}  // namespace hearsay::test

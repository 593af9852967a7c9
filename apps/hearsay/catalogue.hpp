#pragma once
// Everything that a configuration can choose by name, out of the tables of all folders.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.hpp"

namespace hearsay {

/// One line of one table.
struct CatalogueEntry {
  std::string_view name, summary, equation, cost, citation;
  /// What can be set, found by building the entry from an empty configuration. What other entries own (a mixing rule's
  /// keys, say) is shown as their defaults have it.
  struct Keys {
    std::vector<KeyDescription> own;    ///< of the entry's section
    std::vector<KeyDescription> other;  ///< of other sections that it uses, with their names
  };
  std::function<Keys()> keys;
};

/// One table.
struct CatalogueKind {
  std::string name;     ///< "trigger"
  std::string section;  ///< where the configuration chooses: "trigger", "topology.graph"
  std::vector<CatalogueEntry> entries;
};

/// In the order in which a configuration has them.
std::vector<CatalogueKind> catalogue();

/// A section that all runs have, with the keys that stand in it whatever is chosen by name.
struct CatalogueSection {
  std::string name, summary;
  std::vector<KeyDescription> keys;
};
/// Found by reading an empty configuration as a run does: keys of choices are those of the defaults.
std::vector<CatalogueSection> catalogue_sections();

/// The kind called `name`, in singular or plural. Throws ConfigError ("did you mean …?").
const CatalogueKind& find_kind(const std::vector<CatalogueKind>& kinds, const std::string& name);

}  // namespace hearsay

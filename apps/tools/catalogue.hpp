#pragma once
// What a configuration can choose by name, out of the tables of all folders, as `list` and `describe` show it.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/config.hpp"
#include "base/error.hpp"

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

/// A section that all runs have, with the keys that stand in it whatever is chosen by name.
struct CatalogueSection {
  std::string name, summary;
  std::vector<KeyDescription> keys;
};

/// What one door to Hearsay, the program or Python, can choose from.
struct Catalogue {
  std::vector<CatalogueKind> kinds;  ///< in the order in which a configuration has them
  std::vector<CatalogueSection> sections;
  std::string command = "hearsay";  ///< what is typed before `list` and `describe`
  std::string elsewhere{};          ///< what is not in here, and where it is; a sentence without a stop
  std::string remark() const { return elsewhere.empty() ? "" : "; " + elsewhere; }
};

/// The tables of what ranks exchange and how. No sections.
Catalogue exchange_catalogue();
/// What a configuration of the Python package chooses from.
Catalogue python_catalogue();

/// The kind called `name`, in singular or plural. Throws ConfigError ("did you mean …?").
const CatalogueKind& find_kind(const Catalogue& catalogue, const std::string& name);

/// Lets `read` ask for keys and tells which ones. What it then misses (a file that has no default) does not matter
/// here.
template <class Read>
CatalogueEntry::Keys keys_asked(Config config, Read read) {
  Config root;
  try {
    read(config, root);
  } catch (const Error&) {
  }
  CatalogueEntry::Keys keys{config.keys(), root.keys()};
  std::erase_if(keys.own, [](const KeyDescription& key) { return key.key == "name"; });
  return keys;
}

/// `read(entry, config, root)` reads the section as a run that has chosen `entry` does.
template <class TableEntry, class Read>
CatalogueKind table_kind(std::string name, std::string section, std::span<const TableEntry> table, Read read) {
  CatalogueKind kind{std::move(name), std::move(section), {}};
  for (const TableEntry& entry : table) {
    kind.entries.push_back({entry.name, entry.summary, entry.equation, entry.cost, entry.citation, [&entry, read] {
                              const std::string chosen = "{name: " + std::string(entry.name) + "}";
                              return keys_asked(Config::from_text(chosen),
                                                [&](Config& c, Config& root) { read(entry, c, root); });
                            }});
  }
  return kind;
}

inline constexpr auto make_alone = [](const auto& entry, Config& config, Config&) { entry.make(config); };

}  // namespace hearsay

#include "apps/hearsay/catalogue.hpp"

#include <span>

#include "apps/datasets/datasets.hpp"
#include "apps/models/models.hpp"
#include "base/config/nearest.hpp"
#include "base/error.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "runtime/training/model/learning_rate.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/run_plan.hpp"
#include "sparsify/sparsify.hpp"
#include "topology/topology.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

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
CatalogueKind kind(std::string name, std::string section, std::span<const TableEntry> table, Read read) {
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

constexpr auto make_alone = [](const auto& entry, Config& config, Config&) { entry.make(config); };

}  // namespace

std::vector<CatalogueKind> catalogue() {
  return {
      kind("model", "model", models(), make_alone),
      kind("dataset", "data", datasets(), [](const DatasetEntry& entry, Config& c, Config&) { entry.make(c, 0); }),
      kind("partition", "data.partition", partitions(), make_alone),
      kind("optimizer", "optimizer", optimizers(),
           [](const OptimizerEntry& entry, Config& c, Config&) { LearningRate(c, entry.make(c)->learning_rate()); }),
      kind("schedule", "optimizer.schedule", learning_rate_schedules(), make_alone),
      kind("graph", "topology.graph", graphs(), make_alone),
      kind("weights", "topology.weights", weight_rules(), make_alone),
      kind("exchange", "exchange", exchanges(),
           [](const ExchangeEntry& entry, Config& c, Config& root) { entry.make(c, root); }),
      kind("mixing", "exchange.mixing", mixing_rules(), make_alone),
      kind("correction", "exchange.correction", corrections(), make_alone),
      kind("trigger", "trigger", triggers(),
           [](const TriggerEntry&, Config& c, Config&) { static_cast<void>(TriggerPlan(c)); }),
      kind("selector", "sparsify.selector", selectors(), make_alone),
      kind("codec", "sparsify.codec", position_coders(), make_alone),
      kind("quantiser", "sparsify.quantiser", quantisers(), make_alone),
  };
}

std::vector<CatalogueSection> catalogue_sections() {
  Config root;
  RunPlan(root, {.model_name = "", .dataset_name = "", .make_model = {}, .load_data = {}});
  std::vector<CatalogueSection> sections = {
      {"train", "how long, on what, and what happens when something fails", {}},
      {"data", "batches and shares; a data set's own keys are under its name", {}},
      {"optimizer", "the learning rate; of `name: sgd`, other optimizers' own keys are under their names", {}},
      {"report", "what a run leaves behind", {}},
  };
  for (CatalogueSection& section : sections) {
    section.keys = root.section(section.name).keys();
    std::erase_if(section.keys, [](const KeyDescription& key) { return key.key == "name"; });
  }
  return sections;
}

const CatalogueKind& find_kind(const std::vector<CatalogueKind>& kinds, const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogueKind& kind : kinds) {
    if (kind.name == name || kind.name + "s" == name) return kind;
    names.push_back(kind.name);
  }
  std::string known;
  for (const std::string& kind : names) known += (known.empty() ? "" : ", ") + kind;
  const std::string near = nearest(name, names);
  throw ConfigError("unknown kind '" + name + "'; known: " + known +
                    (near.empty() ? "" : " — did you mean '" + near + "'?"));
}

}  // namespace hearsay

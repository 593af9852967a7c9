// hearsay list, describe, compare and --version: what apps/tools says, on stdout.
#include <torch/version.h>  // macros only

#include <iterator>

#include "apps/datasets/datasets.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/models/models.hpp"
#include "apps/shared/output.hpp"
#include "apps/tools/catalogue.hpp"
#include "apps/tools/tools.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/training/model/learning_rate.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/run_plan.hpp"

namespace hearsay {
namespace {

/// Found by reading an empty configuration as a run does: keys of choices are those of the defaults.
std::vector<CatalogueSection> sections_of_a_run() {
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
    for (KeyDescription& key : section.keys)
      if (section.name == "report" && key.key == "directory") key.fallback = "runs/EXCHANGE-MODEL";
  }
  return sections;
}

/// What a configuration of the program can choose by name: exchanges and all that, models, data sets and optimizers.
Catalogue program_catalogue() {
  Catalogue catalogue{.kinds = {table_kind("model", "model", models(), make_alone),
                                table_kind("dataset", "data", datasets(),
                                           [](const DatasetEntry& entry, Config& c, Config&) { entry.make(c, 0); }),
                                table_kind("partition", "data.partition", partitions(), make_alone),
                                table_kind("optimizer", "optimizer", optimizers(),
                                           [](const OptimizerEntry& entry, Config& c, Config&) {
                                             LearningRate(c, entry.make(c)->learning_rate());
                                           }),
                                table_kind("schedule", "optimizer.schedule", learning_rate_schedules(), make_alone)},
                      .sections = sections_of_a_run()};
  std::ranges::move(exchange_catalogue().kinds, std::back_inserter(catalogue.kinds));
  return catalogue;
}

int printed(const std::string& text) {
  print(text);
  return 0;
}

}  // namespace

int list_command(const std::optional<std::string>& wanted) { return printed(list_text(program_catalogue(), wanted)); }

int describe_command(const std::vector<std::string>& names, bool markdown) {
  return printed(markdown ? markdown_text(program_catalogue(), names) : describe_text(program_catalogue(), names));
}

int compare_command(const std::vector<std::filesystem::path>& directories, bool json) {
  return printed(compare_text(directories, json));
}

int version_command() { return printed(version_text({{"LibTorch", TORCH_VERSION}})); }

}  // namespace hearsay

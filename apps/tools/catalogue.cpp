#include "apps/tools/catalogue.hpp"

#include <utility>

#include "base/config/nearest.hpp"
#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "runtime/report/report.hpp"
#include "sparsify/sparsify.hpp"
#include "topology/topology.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {

Catalogue exchange_catalogue() {
  return {.kinds = {table_kind("graph", "topology.graph", graphs(), make_alone),
                    table_kind("weights", "topology.weights", weight_rules(), make_alone),
                    table_kind("exchange", "exchange", exchanges(),
                               [](const ExchangeEntry& entry, Config& c, Config& root) { entry.make(c, root); }),
                    table_kind("mixing", "exchange.mixing", mixing_rules(), make_alone),
                    table_kind("correction", "exchange.correction", corrections(), make_alone),
                    table_kind("trigger", "trigger", triggers(),
                               [](const TriggerEntry&, Config& c, Config&) { static_cast<void>(TriggerPlan(c)); }),
                    table_kind("selector", "sparsify.selector", selectors(), make_alone),
                    table_kind("codec", "sparsify.codec", position_coders(), make_alone),
                    table_kind("quantiser", "sparsify.quantiser", quantisers(), make_alone)},
          .sections = {}};
}

Catalogue python_catalogue() {
  Catalogue catalogue = exchange_catalogue();
  Config report;
  read_report_options(report, "EXCHANGE-MODEL");
  catalogue.sections = {{"report", "what a run leaves behind", report.keys()}};
  catalogue.command = "python3 -m hearsay";
  catalogue.elsewhere =
      "models, data sets, optimizers and training are a Python loop's own; the program `hearsay` lists those that it "
      "has";
  return catalogue;
}

const CatalogueKind& find_kind(const Catalogue& catalogue, const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogueKind& kind : catalogue.kinds) {
    if (kind.name == name || kind.name + "s" == name) return kind;
    names.push_back(kind.name);
  }
  std::string known;
  for (const std::string& kind : names) known += (known.empty() ? "" : ", ") + kind;
  const std::string near = nearest(name, names);
  throw ConfigError("unknown kind '" + name + "'; known: " + known +
                    (near.empty() ? "" : " — did you mean '" + near + "'?") + catalogue.remark());
}

}  // namespace hearsay

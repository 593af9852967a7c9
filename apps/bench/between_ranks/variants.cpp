#include "apps/bench/between_ranks/variants.hpp"

#include <cstdio>

namespace hearsay {
namespace {

std::string yaml_of(const std::string& exchange, const std::string& sparsify, const std::string& trigger = "{}") {
  return "exchange: " + exchange + "\nsparsify: " + sparsify + "\ntrigger: " + trigger;
}

}  // namespace

std::vector<ExchangeVariant> exchange_variants(double density) {
  char number[32];
  std::snprintf(number, sizeof number, "%.9g", density);
  const std::string sparse = "{selector: {density: " + std::string(number) + "}}";
  const std::string topk = "{selector: {name: topk, density: " + std::string(number) + "}}";
  const std::string always = "{name: always}";
  std::vector<ExchangeVariant> all;
  for (const ExchangeEntry& entry : exchanges()) {
    const std::string name(entry.name);
    if (name == "eventgrad") {
      all.push_back({name, yaml_of("{name: eventgrad}", "{}", always)});
      all.push_back(
          {"eventgrad, top-k", yaml_of("{name: eventgrad, mixing: {name: difference, gamma: 0.05}}", topk, always)});
    } else if (name == "gtopk") {
      all.push_back({"gtopk, butterfly", yaml_of("{name: gtopk, merge: butterfly}", sparse)});
      all.push_back({"gtopk, tree", yaml_of("{name: gtopk, merge: tree}", sparse)});
    } else {
      all.push_back({name, yaml_of("{name: " + name + "}", sparse)});
    }
  }
  return all;
}

std::unique_ptr<ExchangePlan> plan_variant(const ExchangeVariant& variant) {
  Config root = Config::from_text(variant.yaml);
  return plan_exchange(root);
}

}  // namespace hearsay

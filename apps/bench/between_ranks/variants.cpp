#include "apps/bench/between_ranks/variants.hpp"

#include <cstdio>

namespace hearsay {
namespace {

std::string yaml_of(const std::string& exchange, const std::string& sparsify, const std::string& trigger = "{}") {
  return "exchange: " + exchange + "\nsparsify: " + sparsify + "\ntrigger: " + trigger;
}

/// What an exchange that takes local steps is told of them.
std::string rounds_of(const ExchangeEntry& entry, bool rounds_of_one_step) {
  Config exchange, root;
  static_cast<void>(entry.make(exchange, root));
  return rounds_of_one_step && exchange.asked("local_steps") ? ", local_steps: 1" : "";
}

}  // namespace

std::vector<ExchangeVariant> exchange_variants(double density, bool rounds_of_one_step) {
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
    } else if (name == "gossip_outer") {
      all.push_back({name, yaml_of("{name: gossip_outer" + rounds_of(entry, rounds_of_one_step) + "}", "{}", always)});
    } else if (name == "powersgd") {
      all.push_back({name, yaml_of("{name: powersgd, dense_iterations: 0}", "{}")});
    } else if (name == "sparta") {
      all.push_back({name, yaml_of("{name: sparta, density: " + std::string(number) + "}", "{}")});
    } else if (name == "fda") {
      all.push_back({name, yaml_of("{name: fda, threshold: 0}", "{}")});  // an average at every iteration
    } else {
      all.push_back({name, yaml_of("{name: " + name + rounds_of(entry, rounds_of_one_step) + "}", sparse)});
    }
  }
  return all;
}

std::unique_ptr<ExchangePlan> plan_variant(const ExchangeVariant& variant) {
  Config root = Config::from_text(variant.yaml);
  return plan_exchange(root);
}

}  // namespace hearsay

#include "python/core/member.hpp"

namespace hearsay::python {
namespace {

/// What the program trains stands in its config.yaml, so that no other program takes it for something else.
std::string name_of(Config& root, const char* key, const std::string& name) {
  Config section = root.section(key);
  return section.text("name", name, "what the Python program trains, or on what: for the reports only");
}

}  // namespace

JobPlan::JobPlan(Config root, const std::string& model_name, const std::string& data_name) {
  seed = read_seed(root);
  model = name_of(root, "model", model_name);
  dataset = name_of(root, "data", data_name);
  Config section = root.section("exchange");
  const ExchangeEntry& entry = chosen_exchange(section);
  exchange_name = entry.name;
  exchange = entry.make(section, root);
  topology = plan_topology(root, *exchange);
  Config reports = root.section("report");
  report = read_report_options(reports, exchange_name + "-" + model);
  root.throw_if_invalid();
  yaml = root.dump();
  notes = root.notes();
}

bool JobPlan::in_step() const { return exchange->schedule() == Schedule::lockstep; }

}  // namespace hearsay::python

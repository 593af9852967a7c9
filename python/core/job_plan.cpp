#include "python/core/member.hpp"

namespace hearsay::python {
namespace {

/// What the program trains stands in its config.yaml, so that no other program takes it for something else.
std::string name_of(Config& root, const char* key, const std::string& name) {
  Config section = root.section(key);
  return section.text("name", name, "what the Python program trains, or on what: for the reports only");
}

/// A configuration of the program `hearsay` says much that a Python loop does itself. That is left aside with a note.
void leave_to_the_loop(Config& root) {
  std::string aside;
  const auto leave = [&aside](Config of, const std::string& key, const std::string& name) {
    of.disregard(key);
    if (of.has(key)) aside += (aside.empty() ? "" : ", ") + name;
  };
  for (const std::string section : {"model", "data"}) {
    Config read = root.section(section);
    for (const std::string& key : read.unasked()) leave(read, key, section + "." + key);
  }
  for (const std::string section : {"optimizer", "simulate"}) leave(root, section, section);
  Config train = root.section("train");
  if (train.asked("on_failure")) {
    for (const std::string& key : train.unasked()) leave(train, key, "train." + key);
  } else {
    for (const std::string& key : train.unasked()) train.disregard(key);
    leave(root, "train", "train");
  }
  leave(root.section("report"), "save_model", "report.save_model");
  if (!aside.empty())
    root.note("model, data, optimizer and training are the loop's own business in Python: it does not use " + aside);
}

/// Whether the job goes on without ranks that die, and with others, is what a loop does not do itself of `train`.
OnFailure read_deaths(Config& root, const ExchangePlan& exchange) {
  Config train = root.section("train");
  if (!train.has("on_failure") && !train.has("joins")) return {};
  return read_without_spares(train, exchange);
}

}  // namespace

JobPlan::JobPlan(Config root, const std::string& model_name, const std::string& data_name) : root_(root) {
  seed = read_seed(root);
  model = name_of(root, "model", model_name);
  dataset = name_of(root, "data", data_name);
  Config section = root.section("exchange");
  const ExchangeEntry& entry = chosen_exchange(section);
  exchange_name = entry.name;
  exchange = entry.make(section, root);
  on_failure = read_deaths(root, *exchange);
  topology_ = plan_topology(root, *exchange);
  Config reports = root.section("report");
  report = read_report_options(reports, exchange_name + "-" + model);
  leave_to_the_loop(root);
  root.document().throw_if_invalid();
  yaml = root.document().dump();
  notes = root.document().notes();
}

bool JobPlan::in_step() const { return exchange->schedule() == Schedule::lockstep; }

std::shared_ptr<const Topology> JobPlan::topology(int ranks) const {
  Config root = root_;
  const auto fits = [&](const char* section, const char* key, const auto& work) {
    try {
      work();
    } catch (const ConfigError& error) {
      root.section(section).refuse(key, error.in_python());
      root.document().throw_if_invalid();
    }
  };
  fits("exchange", "name", [&] { exchange->require_ranks(ranks); });
  std::shared_ptr<const Topology> built;
  fits("topology", "graph", [&] { built = std::make_shared<const Topology>(topology_->build(ranks)); });
  return built;
}

}  // namespace hearsay::python

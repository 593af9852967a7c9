// The table of exchanges: one declaration and one entry an algorithm.
#include <array>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

ExchangeEntry dpsgd_exchange();
ExchangeEntry eventgrad_exchange();
ExchangeEntry allreduce_exchange();
ExchangeEntry topk_exchange();
ExchangeEntry gtopk_naive_exchange();
ExchangeEntry gtopk_exchange();
ExchangeEntry lkgs_exchange();
ExchangeEntry hitopk_exchange();
ExchangeEntry gradient_dropping_exchange();

std::span<const ExchangeEntry> exchanges() {
  static const std::array entries{dpsgd_exchange(), eventgrad_exchange(), allreduce_exchange(),
                                  topk_exchange(),  gtopk_exchange(),     gtopk_naive_exchange(),
                                  lkgs_exchange(),  hitopk_exchange(),    gradient_dropping_exchange()};
  return entries;
}

const ExchangeEntry& chosen_exchange(Config& exchange) {
  return chosen_entry(exchanges(), exchange, "eventgrad", "how replicas learn from each other");
}

std::unique_ptr<ExchangePlan> plan_exchange(Config& root) {
  Config exchange = root.section("exchange");
  return chosen_exchange(exchange).make(exchange, root);
}

std::unique_ptr<TopologyPlan> plan_topology(Config& root, const ExchangePlan& exchange) {
  const ExchangeLaws laws = exchange.laws();
  if (!laws.along_graph) return std::make_unique<TopologyPlan>(TopologyPlan::everybody());
  Config section = root.section("topology");
  auto plan = std::make_unique<TopologyPlan>(section);
  section.require(!plan->changes() || laws.follows_turns, "graph",
                  "'" + plan->graph_name() +
                      "' changes from iteration to iteration, which only exchange: {name: dpsgd, schedule: lockstep} "
                      "follows; choose that or another graph");
  return plan;
}

Schedule read_schedule(Config& exchange) {
  const std::string name =
      exchange.choice("schedule", "lockstep", {"lockstep", "asynchronous"},
                      "wait for every neighbour's packet of an iteration, or use what has arrived");
  return name == "lockstep" ? Schedule::lockstep : Schedule::asynchronous;
}

}  // namespace hearsay

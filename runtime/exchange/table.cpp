// The table of exchanges: one declaration and one entry an algorithm.
#include <array>
#include <utility>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

ExchangeEntry dpsgd_exchange();
ExchangeEntry eventgrad_exchange();
ExchangeEntry quasi_global_momentum_exchange();
ExchangeEntry gradient_tracking_exchange();
ExchangeEntry momentum_tracking_exchange();
ExchangeEntry beer_exchange();
ExchangeEntry motef_exchange();
ExchangeEntry cedas_exchange();
ExchangeEntry push_sum_exchange();
ExchangeEntry allreduce_exchange();
ExchangeEntry topk_exchange();
ExchangeEntry gtopk_naive_exchange();
ExchangeEntry gtopk_exchange();
ExchangeEntry lkgs_exchange();
ExchangeEntry hitopk_exchange();
ExchangeEntry powersgd_exchange();
ExchangeEntry demo_exchange();
ExchangeEntry gradient_dropping_exchange();
ExchangeEntry diloco_exchange();
ExchangeEntry sparseloco_exchange();
ExchangeEntry noloco_exchange();
ExchangeEntry gasloc_exchange();
ExchangeEntry sparta_exchange();
ExchangeEntry fda_exchange();
ExchangeEntry gossip_outer_exchange();

std::span<const ExchangeEntry> exchanges() {
  static const std::array entries{dpsgd_exchange(),
                                  eventgrad_exchange(),
                                  quasi_global_momentum_exchange(),
                                  gradient_tracking_exchange(),
                                  momentum_tracking_exchange(),
                                  beer_exchange(),
                                  motef_exchange(),
                                  cedas_exchange(),
                                  push_sum_exchange(),
                                  allreduce_exchange(),
                                  topk_exchange(),
                                  gtopk_exchange(),
                                  gtopk_naive_exchange(),
                                  lkgs_exchange(),
                                  hitopk_exchange(),
                                  powersgd_exchange(),
                                  demo_exchange(),
                                  gradient_dropping_exchange(),
                                  diloco_exchange(),
                                  sparseloco_exchange(),
                                  noloco_exchange(),
                                  gasloc_exchange(),
                                  sparta_exchange(),
                                  fda_exchange(),
                                  gossip_outer_exchange()};
  return entries;
}

const ExchangeEntry& chosen_exchange(Config& exchange) {
  return chosen_entry(exchanges(), exchange, "eventgrad", "how replicas learn from each other");
}

std::unique_ptr<ExchangePlan> plan_exchange(Config& root) {
  Config exchange = root.section("exchange");
  return chosen_exchange(exchange).make(exchange, root);
}

namespace {

/// Sections that some exchanges have and the chosen one has not.
void explain_unused_sections(Config& root) {
  Config exchange = root.section("exchange");
  const std::string name(chosen_exchange(exchange).name);
  for (const auto& [section, others] : {std::pair{"topology", "one along a graph (dpsgd, eventgrad)"},
                                        {"trigger", "one with events (eventgrad, gossip_outer)"},
                                        {"sparsify", "one that compresses (eventgrad, topk, sparseloco)"}})
    root.explain_unknown(section, "exchange '" + name + "' does not use this section: leave it out, or take " + others);
}

}  // namespace

std::unique_ptr<TopologyPlan> plan_topology(Config& root, const ExchangePlan& exchange) {
  explain_unused_sections(root);
  const ExchangeLaws laws = exchange.laws();
  if (!laws.along_graph) return std::make_unique<TopologyPlan>(TopologyPlan::everybody());
  Config section = root.section("topology");
  auto plan = std::make_unique<TopologyPlan>(section);
  section.require(
      !plan->changes() || laws.follows_phases, "graph",
      "'" + plan->graph_name() +
          "' changes from iteration to iteration, which only exchanges follow that use fresh copies alone: "
          "in lockstep without a delay dpsgd, quasi_global_momentum, gradient_tracking, momentum_tracking, gasloc and "
          "push_sum; choose one of them or another graph");
  section.require(
      !plan->directed() || laws.along_arcs, "graph",
      "'" + plan->graph_name() +
          "' is directed, and along its edges only exchange: {name: push_sum} keeps the mean of the models; "
          "choose that or another graph");
  return plan;
}

}  // namespace hearsay

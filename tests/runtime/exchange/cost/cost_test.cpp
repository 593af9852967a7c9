// The cost formulas against the exchanges themselves: bytes as the ledgers count them, bounds as the plans state them;
// and what the formulas say of networks so extreme that the answer is known.
#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/collectives/gather.hpp"
#include "runtime/exchange/cost/cost.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/global_job.hpp"
#include "tests/runtime/exchange/outer/given.hpp"

namespace cost_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

/// Segments of lengths that P = 2, 4 and 8 divide, so that no shard is a value longer than another.
Layout even_layout() {
  Layout layout;
  layout.append("a", {64});
  layout.append("b", {16, 32});
  layout.append("c", {448});
  return layout;
}

std::string with_density(const std::string& exchange, double density) {
  return "exchange: " + exchange + "\nsparsify: {selector: {name: topk, density: " + std::to_string(density) + "}}";
}

/// Normal values: none is zero and no two are alike.
void normal_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(5, "gradient", static_cast<std::uint64_t>(rank * 1000 + k)));
  for (float& value : g) value = static_cast<float>(random.normal());
}

double cost_bytes(const std::string& yaml, int ranks, const Layout& layout) {
  const GlobalPlan plan(yaml);
  const auto cost = plan->cost(layout, complete_topology(ranks), {});
  REQUIRE(cost.has_value());
  return cost->sent_bytes * ranks;
}

double sent_bytes(const std::string& yaml, int ranks, const Layout& layout, Iteration iterations) {
  const GlobalOutcome outcome =
      run_global(yaml, {.ranks = ranks, .iterations = iterations, .gradient = normal_gradient}, layout);
  double bytes = 0.0;
  for (const Traffic& traffic : outcome.traffic) bytes += static_cast<double>(traffic.bytes);
  return bytes;
}

constexpr double n = 25e6;
ExchangeCost gtopk_of(int ranks, double density, bool butterfly) {
  const auto k = static_cast<std::size_t>(density * n);
  return gtopk_cost({.ranks = ranks, .values = static_cast<std::size_t>(n), .k = k, .message_bytes = 8 * k}, butterfly,
                    {.hosts = ranks});
}
ExchangeCost topk_of(int ranks, double density) {
  const auto k = static_cast<std::size_t>(density * n);
  return gathered_cost({.ranks = ranks, .values = static_cast<std::size_t>(n), .k = k, .message_bytes = 8 * k},
                       {.hosts = ranks});
}
ExchangeCost dense_of(int ranks) { return allreduce_cost(ranks, static_cast<std::size_t>(n), 1, {.hosts = ranks}); }

}  // namespace

TEST_CASE("bytes by formula are the bytes sent, to the byte, where the number of entries is fixed") {
  const Layout layout = even_layout();
  for (const int ranks : {2, 4, 8}) {
    for (const std::string exchange :
         {"{name: allreduce}", "{name: allreduce, bucket_bytes: 4}", "{name: powersgd, dense_iterations: 0}",
          "{name: powersgd, dense_iterations: 0, rank: 9, least_saving: 0}"}) {
      const std::string yaml = "exchange: " + exchange;
      CHECK(cost_bytes(yaml, ranks, layout) * 3 == doctest::Approx(sent_bytes(yaml, ranks, layout, 3)));
    }
    for (const double density : {0.01, 0.1, 0.4}) {
      for (const std::string exchange :
           {"{name: topk}", "{name: gtopk_naive}", "{name: gtopk, merge: tree}", "{name: gtopk, merge: butterfly}",
            "{name: hitopk, node_size: 2}", "{name: demo}", "{name: demo, block_side: 8}"}) {
        const std::string yaml = with_density(exchange, density);
        CAPTURE(yaml);
        CAPTURE(ranks);
        CHECK(cost_bytes(yaml, ranks, layout) * 3 == sent_bytes(yaml, ranks, layout, 3));
      }
    }
  }
}

TEST_CASE("bytes by formula are the bytes sent where ranks meet in rounds, or for a few coordinates") {
  const Layout layout = even_layout();
  for (const std::string exchange :
       {"{name: diloco, local_steps: 2}", "{name: noloco, local_steps: 2}", "{name: sparta, density: 0.25}",
        "{name: sparseloco, local_steps: 2}\n"
        "sparsify: {selector: {name: topk, density: 0.1}}",
        "{name: sparseloco, local_steps: 2}\n"
        "sparsify: {selector: {name: chunked, density: 0.1}, quantiser: {name: two_bit}}"}) {
    const std::string yaml = everybody + "exchange: " + exchange;
    const Plan plan(yaml);
    for (const int ranks : {2, 4, 8}) {
      CAPTURE(yaml);
      CAPTURE(ranks);
      const double formula = plan.exchange().cost(layout, plan.topology(ranks), {})->sent_bytes;
      const reference::Quadratic problem(layout, ranks, 3);
      const LedgerTotals sent = train_locally(yaml, layout, problem.initial(), problem,
                                              {.ranks = ranks, .iterations = 8, .run = Ranks::threads})
                                    .totals();
      CHECK(static_cast<double>(sent.bytes()) == doctest::Approx(8 * ranks * formula).epsilon(0.01));
    }
  }
}

TEST_CASE("bytes by formula stay within a twentieth where the number of entries is not fixed") {
  const Layout layout = even_layout();
  // What a second and third iteration add: the first one of lkgs is dense.
  const auto later = [&](const std::string& yaml, int ranks) {
    return 0.5 * (sent_bytes(yaml, ranks, layout, 3) - sent_bytes(yaml, ranks, layout, 1));
  };
  for (const int ranks : {2, 4, 8}) {
    CAPTURE(ranks);
    const std::string lkgs = with_density("{name: lkgs}", 0.25);
    CHECK(cost_bytes(lkgs, ranks, layout) == doctest::Approx(later(lkgs, ranks)).epsilon(0.05));
    Layout large;  // sent whole, both around the ring
    large.append("a", {64, 64});
    large.append("b", {5120});
    const std::string all = with_density("{name: lkgs}", 1.0);
    CHECK(cost_bytes(all, ranks, large) * 2 == sent_bytes(all, ranks, large, 3) - sent_bytes(all, ranks, large, 1));
    // No optimizer moves x here, so that pulls are empty: headers.
    const std::size_t k = layout.size() / 4;
    const ExchangeCost sharded = sharded_cost(
        {.ranks = ranks, .values = layout.size(), .k = k, .message_bytes = 8 + 8 * k / static_cast<std::size_t>(ranks)},
        8 + gather_header_bytes, {});
    const std::string dropping = with_density("{name: gradient_dropping}", 0.25);
    CHECK(sharded.sent_bytes * ranks == doctest::Approx(later(dropping, ranks)).epsilon(0.05));
  }
}

TEST_CASE("no formula promises more bytes than the exchange's own bound, for every exchange and number of ranks") {
  const Layout layout = reference::small_layout();
  for (const ExchangeEntry& entry : exchanges()) {
    for (const int ranks : {2, 3, 4, 5, 8}) {
      CAPTURE(entry.name);
      CAPTURE(ranks);
      Config root = Config::from_text("exchange: {name: " + std::string(entry.name) + "}");
      const auto plan = plan_exchange(root);
      const Topology topology = complete_topology(ranks);
      const auto cost = plan->cost(layout, topology, {});
      if (!cost) continue;
      CHECK(cost->sent_bytes * ranks <= static_cast<double>(plan->worst_case_bytes(layout, topology)) * (1 + 1e-12));
      CHECK(cost->sent_bytes > 0.0);
    }
  }
}

TEST_CASE("packets to neighbours are as long as the exchange's largest packet, and shorter where fewer segments fire") {
  const Layout layout = reference::small_layout();
  Config root = Config::from_text("exchange: {name: eventgrad}");
  const auto plan = plan_exchange(root);
  for (const int ranks : {3, 4, 8}) {
    const Topology topology = complete_topology(ranks);
    const auto all = plan->cost(layout, topology, {}), half = plan->cost(layout, topology, {.event_fraction = 0.5}),
               none = plan->cost(layout, topology, {.event_fraction = 0.0});
    CHECK(all->sent_bytes * ranks == static_cast<double>(plan->worst_case_bytes(layout, topology)));
    CHECK(none->sent_bytes == sizeof(PacketHeader) * (ranks - 1.0));
    CHECK(half->sent_bytes == 0.5 * (all->sent_bytes + none->sent_bytes));
  }
}

TEST_CASE("bytes by formula are the bytes sent along a graph, but for the markers of rings") {
  const Layout layout = reference::small_layout();
  for (const ExchangeEntry& entry : exchanges()) {
    std::string yaml = in_rounds(entry.name, 2);
    if (!GlobalPlan(yaml)->laws().along_graph) continue;
    if (entry.name == "eventgrad" || entry.name == "gossip_outer") yaml += "\ntrigger: {name: always}\n";
    const GlobalPlan plan(yaml);
    CAPTURE(entry.name);
    const reference::Quadratic problem(layout, 4, 3);
    const std::string graph = "topology: {graph: {name: ring}, weights: {name: uniform}}\n";
    const LedgerTotals sent = train_locally(graph + yaml, layout, problem.initial(), problem,
                                            {.ranks = 4, .iterations = 10, .run = Ranks::threads})
                                  .totals();
    const double formula = 4 * 10 * plan->cost(layout, Plan(graph + yaml).topology(4), {})->sent_bytes;
    CHECK(static_cast<double>(sent.payload_bytes + sent.header_bytes) == doctest::Approx(formula).epsilon(0.005));
  }
}

TEST_CASE("where every segment travels, the formula has the exchange's largest packets, also along arcs") {
  const Layout layout = reference::small_layout();
  int along_graphs = 0, along_arcs = 0;
  for (const ExchangeEntry& entry : exchanges()) {
    const GlobalPlan plan(in_rounds(entry.name, 1));
    const ExchangeLaws laws = plan->laws();
    if (!laws.along_graph) continue;
    CAPTURE(entry.name);
    ++along_graphs;
    for (const std::string graph : {"complete", "directed_ring", "directed_exponential"}) {
      if (graph != "complete" && !laws.along_arcs) continue;
      along_arcs += graph != "complete" ? 1 : 0;
      Config config = Config::from_text("graph: {name: " + graph + "}\nweights: {name: uniform}");
      const Topology topology = TopologyPlan(config).build(5);
      const auto cost = plan->cost(layout, topology, {});
      REQUIRE(cost.has_value());
      CHECK(cost->sent_bytes * 5 == doctest::Approx(plan->worst_case_bytes(layout, topology)).epsilon(1e-12));
      const double packets = entry.name == "beer" || entry.name == "motef" ? 2.0 : 1.0;  // trackers travel apart
      CHECK(cost->inside.messages == packets * 4.0 * (graph == "complete" ? 4 : graph == "directed_ring" ? 1 : 3));
    }
  }
  CHECK(along_graphs >= 6);
  CHECK(along_arcs >= 2);
}

TEST_CASE("where bandwidth is free, fewer messages are faster; where latency is free, fewer bytes are") {
  const Network no_beta{.between = {.alpha_s = 1.0}}, no_alpha{.between = {.beta_s = 1.0}};
  for (const int ranks : {4, 16, 64}) {
    const auto latency = [&](const ExchangeCost& cost) { return communication_s(cost, no_beta); };
    CHECK(latency(gtopk_of(ranks, 0.001, true)) == latency(topk_of(ranks, 0.001)));
    CHECK(latency(gtopk_of(ranks, 0.001, true)) < latency(gtopk_of(ranks, 0.001, false)));
    CHECK(latency(topk_of(ranks, 0.001)) < latency(dense_of(ranks)));
    const auto traffic = [&](const ExchangeCost& cost) { return communication_s(cost, no_alpha); };
    CHECK(traffic(gtopk_of(ranks, 0.001, true)) <= traffic(topk_of(ranks, 0.001)));
    CHECK(traffic(topk_of(ranks, 0.001)) < traffic(dense_of(ranks)));
    // All-gathered entries grow with P, a dense ring does not: from 2 (P − 1) ρ > 2 (P − 1)/P on, ρ > 1/P, dense wins.
    CHECK(traffic(topk_of(ranks, 1.1 / ranks)) > traffic(dense_of(ranks)));
    CHECK(traffic(topk_of(ranks, 0.9 / ranks)) < traffic(dense_of(ranks)));
  }
}

TEST_CASE("on a network that costs nothing the dense sum wins: nobody has to select") {
  const Network memory_only{.memory_s = 1e-10, .selection_s = 2e-9, .merge_s = 1e-8};
  for (const int ranks : {2, 8, 32})
    CHECK(iteration_s(dense_of(ranks), memory_only, 0.1) < iteration_s(topk_of(ranks, 0.001), memory_only, 0.1));
}

TEST_CASE("what overlaps hides behind computing as far as that lasts; asynchronous messages cost nobody time") {
  const Network network{.inside = {.alpha_s = 1.0}};
  ExchangeCost cost{.inside = {.messages = 3.0}};
  CHECK(iteration_s(cost, network, 2.0) == 5.0);
  cost.overlaps = true;
  CHECK(iteration_s(cost, network, 2.0) == 3.0);
  CHECK(iteration_s(cost, network, 4.0) == 4.0);
  cost.waits = false;
  CHECK(iteration_s(cost, network, 2.0) == 2.0);
}

TEST_CASE("bytes take longer where everybody sends at once, latencies do not") {
  const Network network{.inside = {.alpha_s = 1.0, .beta_s = 10.0},
                        .between = {.alpha_s = 2.0},
                        .loads = {{.bytes = 1.0, .crossing = 2.0, .shifting = 1.5}}};
  ExchangeCost cost{.inside = {.messages = 3.0, .words = 4.0}, .between = {.messages = 5.0, .words = 6.0}};
  CHECK(communication_s(cost, network) == 13.0 + 40.0);
  cost.pattern = Pattern::crossing;
  CHECK(communication_s(cost, network) == 13.0 + 80.0);
  cost.pattern = Pattern::shifting;
  CHECK(communication_s(cost, network) == 13.0 + 60.0);
}

TEST_CASE(
    "how much longer depends on the length: what was measured, between it by the logarithm, beyond it the nearest") {
  const Network network{.between = {.beta_s = 1.0},
                        .loads = {{.bytes = 100.0, .crossing = 3.0, .shifting = 1.5},
                                  {.bytes = 10'000.0, .crossing = 2.0, .shifting = 1.5},
                                  {.bytes = 1e6, .crossing = 1.0, .shifting = 1.5}}};
  const auto factor = [&](double bytes, double messages, Pattern pattern) {
    const double words = messages * bytes / 4.0;
    return communication_s({.between = {.messages = messages, .words = words}, .pattern = pattern}, network) / words;
  };
  for (const double messages : {1.0, 8.0}) {
    CHECK(factor(100.0, messages, Pattern::crossing) == 3.0);
    CHECK(factor(1000.0, messages, Pattern::crossing) == doctest::Approx(2.5));
    CHECK(factor(10'000.0, messages, Pattern::crossing) == 2.0);
    CHECK(factor(1e5, messages, Pattern::crossing) == doctest::Approx(1.5));
    CHECK(factor(4.0, messages, Pattern::crossing) == 3.0);
    CHECK(factor(1e9, messages, Pattern::crossing) == 1.0);
    CHECK(factor(1000.0, messages, Pattern::shifting) == 1.5);
    CHECK(factor(1000.0, messages, Pattern::one_way) == 1.0);
  }
  CHECK(communication_s({}, network) == 0.0);
  // One of a neighbour's four messages is the packet, the others carry nothing.
  const ExchangeCost packets = neighbour_cost({.degree = 2, .packet_bytes = 10'000.0}, {.hosts = 2});
  CHECK(communication_s(packets, network) == doctest::Approx(2.0 * 2.0 * 2500.0));
}

TEST_CASE("the work of a selection: as top-k's was measured, or so many reads after a sum") {
  const Network network{.memory_s = 1.0, .read_s = 10.0, .selection_s = 100.0, .kept_s = 1000.0};
  CHECK(selection_work(10.0, 2.0, 0.0).seconds(network) == 1000.0 + 2000.0);
  CHECK(selection_work(10.0, 2.0, 5.0).seconds(network) == 4.0 * (3.0 + 5.0 * 10.0) * 10.0 + 2000.0);
  const LocalWork work{
      .moved_bytes = 1.0, .read_bytes = 5.0, .selected_values = 2.0, .kept_entries = 3.0, .merged_entries = 4.0};
  CHECK((0.5 * work + 0.5 * work).seconds(network) == work.seconds(network));
}

TEST_CASE("messages of algorithms that know no hosts go between hosts where there are several") {
  const CommunicationCost messages{.messages = 2.0, .words = 3.0};
  CHECK(flat_cost(messages, 0.0, Pattern::one_way, {.hosts = 1}).inside.words == 3.0);
  CHECK(flat_cost(messages, 0.0, Pattern::one_way, {.hosts = 2}).between.words == 3.0);
  // HiTopKComm keeps the dense part inside.
  const ExchangeCost cost =
      hierarchical_cost({.ranks = 8, .values = 1000, .k = 5, .message_bytes = 40}, 4, 0, {.hosts = 2});
  CHECK(cost.between.words == 10.0);
  CHECK(cost.inside.words == 2 * 0.75 * 1000);
}

}  // namespace cost_test

// The laws of push-sum.
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/neighbour/directed.hpp"
#include "tests/runtime/exchange/stepwise.hpp"

namespace hearsay::push_sum_test {
namespace {

using namespace test;

constexpr const char* push_sum = "exchange: {name: push_sum}\n";

std::string directed(const TextFile& arcs) {
  return "topology: {graph: {name: edge_list, directed: true, path: " + arcs.name() + "}, weights: {name: uniform}}\n";
}

// Between finish and the step the replica holds the numerators. The last value is 1 on every rank at first: its
// numerator is the weight. Ranks send to one or three others, so shares are 1/2 and 1/4: five iterations divide by 2^10
// at most.
TEST_CASE("numerators and weights keep their sums, exactly, where no row sums to 1") {
  const TextFile arcs("0 1\n1 2\n2 3\n3 0\n3 1\n3 2\n");
  const Layout layout = reference::small_layout();
  Stepwise job(directed(arcs) + push_sum, layout, 4, [](int rank, std::span<float> x) {
    whole_numbers(rank, 0, 4096, x);
    x.back() = 4096.0F;
  });
  const std::vector<double> numerators = job.sum_of_x();
  for (Iteration k = 0; k < 5; ++k) {
    job.exchange(k, 0.0, [](int, std::span<float> g) { std::ranges::fill(g, 0.0F); });
    CHECK(job.sum_of_x() == numerators);
    float least = 4096.0F, most = 4096.0F;
    for (int rank = 0; rank < 4; ++rank) {
      least = std::min(least, job.x(rank).back());
      most = std::max(most, job.x(rank).back());
    }
    CHECK(least < 4096.0F);
    CHECK(most > 4096.0F);
    job.step(k, 0.0);
    for (int rank = 0; rank < 4; ++rank) CHECK(job.x(rank).back() == 4096.0F);  // numerator / weight
  }
}

TEST_CASE("a step moves the numerators by the sum of the gradients, whatever the weights are") {
  const TextFile arcs("0 1\n1 2\n2 3\n3 0\n3 1\n3 2\n");
  const Layout layout = reference::small_layout();
  Stepwise job(directed(arcs) + push_sum, layout, 4, [](int, std::span<float>) {});
  std::vector<double> expected(layout.size());
  for (Iteration k = 0; k < 4; ++k) {
    std::vector<double> g(layout.size());
    job.exchange(k, 0.25, [&](int rank, std::span<float> own) {
      whole_numbers(rank, k, 4096, own);
      for (std::size_t e = 0; e < own.size(); ++e) g[e] += own[e];
    });
    CHECK(job.sum_of_x() == expected);
    for (std::size_t e = 0; e < g.size(); ++e) expected[e] -= 0.25 * g[e];
    job.step(k, 0.25);
  }
}

/// A circle in random order, so that all reach all, and random arcs beside it.
std::string random_arcs(int ranks, std::uint64_t seed) {
  Random random(stream_seed(seed, "arcs", static_cast<std::uint64_t>(ranks)));
  std::vector<int> order(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::set<std::pair<int, int>> arcs;
  for (std::size_t i = 0; i < order.size(); ++i) arcs.insert({order[i], order[(i + 1) % order.size()]});
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < ranks; ++j)
      if (i != j && random.uniform() < 0.2) arcs.insert({i, j});
  std::string lines;
  for (const auto& [i, j] : arcs) lines += std::to_string(i) + " " + std::to_string(j) + "\n";
  return lines;
}

TEST_CASE("on every strongly connected graph all models become the mean of what they were") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const auto prepare = [](LocalRank& rank) { whole_numbers(rank.rank(), 5, 1, rank.replica.values.span()); };
  for (const int ranks : {2, 3, 5, 8}) {
    std::vector<double> mean(layout.size());
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> x(layout.size());
      whole_numbers(rank, 5, 1, x);
      for (std::size_t e = 0; e < x.size(); ++e) mean[e] += static_cast<double>(x[e]) / ranks;
    }
    const auto check = [&](const std::string& topology) {
      CAPTURE(topology);
      CAPTURE(ranks);
      const JobOutcome job =
          train_locally(topology + push_sum, layout, initial, ZeroGradient(),
                        {.ranks = ranks, .descent = {.learning_rate = 0.0}, .iterations = 300, .prepare = prepare});
      double furthest = 0.0;
      for (const RankOutcome& rank : job.ranks)
        for (std::size_t e = 0; e < mean.size(); ++e) furthest = std::max(furthest, std::abs(rank.x[e] - mean[e]));
      CHECK(furthest < 1e-4);
    };
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const TextFile arcs(random_arcs(ranks, seed));
      check(directed(arcs));
    }
    for (const auto& graph : graph_choices()) check(graph.yaml);
    check(one_peer);
  }
}

TEST_CASE("where W is doubly stochastic and its sums are exact, it is dpsgd with 4 bytes more a message") {
  const Layout layout = reference::small_layout();
  const std::string complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";
  const auto check = [&](const std::string& topology, int ranks) {
    CAPTURE(topology);
    CAPTURE(ranks);
    const reference::Quadratic problem(layout, ranks, 3);
    const auto train = [&](const std::string& exchange) {
      return train_locally(topology + exchange, layout, problem.initial(), problem, {.ranks = ranks});
    };
    const JobOutcome a = train(push_sum), b = train(dpsgd);
    CHECK(a.hashes() == b.hashes());
    CHECK(a.totals().messages == b.totals().messages);
    CHECK(a.totals().payload_bytes == b.totals().payload_bytes + 4 * b.totals().messages);
  };
  for (const int ranks : {1, 2, 4, 8}) check(complete, ranks);
  for (const int ranks : {2, 3, 4, 8}) check(one_peer, ranks);
}

TEST_CASE("along arcs, packets go one way") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {2, 3, 5, 8}) {
    const reference::Quadratic problem(layout, ranks, 3);
    const DirectedFile file(ranks);
    for (const auto& graph : directed_choices()) {
      const std::string yaml = graph.yaml(file) + push_sum;
      const Topology topology = Plan(yaml).topology(ranks);
      const JobOutcome job = train_locally(yaml, layout, problem.initial(), problem, {.ranks = ranks});
      std::int64_t arcs = 0;
      const auto shares = graph.shares(ranks);
      for (std::size_t i = 0; i < shares.size(); ++i)
        for (std::size_t j = 0; j < shares.size(); ++j) arcs += i != j && shares[i][j] > 0.0 ? 1 : 0;
      CHECK(topology.directed_edges() == arcs);
      CHECK(job.totals().packets == static_cast<std::uint64_t>(arcs * 60));
    }
  }
}

std::string refusal(const std::string& yaml) {
  try {
    Config root = Config::from_text(yaml);
    const auto exchange = plan_exchange(root);
    const auto topology = plan_topology(root, *exchange);
    root.document().throw_if_invalid();
    static_cast<void>(topology->build(4));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("what does not push sums refuses directed graphs, and so do weights that are not shares") {
  const std::string graph = "topology: {graph: {name: directed_ring}, weights: {name: uniform}}\n";
  for (const ExchangeEntry& entry : exchanges()) {
    const std::string exchange = "exchange: {name: " + std::string(entry.name) + "}\n";
    Config root = Config::from_text(exchange);
    const ExchangeLaws laws = plan_exchange(root)->laws();
    if (!laws.along_graph) continue;
    CAPTURE(entry.name);
    CHECK(refusal(graph + exchange).empty() == laws.along_arcs);
    if (!laws.along_arcs) CHECK(refusal(graph + exchange).find("{name: push_sum}") != std::string::npos);
  }
  for (const std::string weights : {"metropolis", "max_degree", "best_constant", "edge_list"})
    CHECK(refusal("topology: {graph: {name: directed_ring}, weights: {name: " + weights + "}}\n" + push_sum)
              .find("use weights: {name: uniform}") != std::string::npos);
  CHECK(refusal("exchange: {name: push_sum, in_flight: 2}").find("leave it at 1") != std::string::npos);
}

}  // namespace
}  // namespace hearsay::push_sum_test

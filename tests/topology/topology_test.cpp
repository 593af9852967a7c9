// Rows of W, the plan's configuration, Graphviz output, and the families with keys of their own.
#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::topology_test {
namespace {

using Edges = std::set<std::pair<int, int>>;

Edges edges_of(const Graph& graph) {
  Edges all;
  for (const auto edge : boost::make_iterator_range(boost::edges(graph)))
    all.insert(std::minmax(static_cast<int>(boost::source(edge, graph)), static_cast<int>(boost::target(edge, graph))));
  return all;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("edges of small graphs") {
  CHECK(edges_of(test::build_graph(4, "ring")) == Edges{{0, 1}, {1, 2}, {2, 3}, {0, 3}});
  CHECK(edges_of(test::build_graph(2, "ring")) == Edges{{0, 1}});
  CHECK(edges_of(test::build_graph(4, "path")) == Edges{{0, 1}, {1, 2}, {2, 3}});
  CHECK(edges_of(test::build_graph(4, "star")) == Edges{{0, 1}, {0, 2}, {0, 3}});
  CHECK(edges_of(test::build_graph(4, "hypercube")) == Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(edges_of(test::build_graph(6, "grid")) == Edges{{0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 3}, {1, 4}, {2, 5}});
  CHECK(edges_of(test::build_graph(6, "grid", "rows: 3")) ==
        Edges{{0, 1}, {2, 3}, {4, 5}, {0, 2}, {2, 4}, {1, 3}, {3, 5}});
  CHECK(edges_of(test::build_graph(12, "torus")).size() == 24);
  CHECK(edges_of(test::build_graph(12, "torus")).contains({0, 8}));
  CHECK(edges_of(test::build_graph(12, "torus")).contains({0, 3}));
  CHECK(edges_of(test::build_graph(8, "exponential")).size() == 8 * 5 / 2);
  CHECK(edges_of(test::build_graph(5, "complete")).size() == 10);
}

TEST_CASE("erdos_renyi: the seed decides, the probability counts") {
  const auto draw = [](const std::string& keys) { return edges_of(test::build_graph(64, "erdos_renyi", keys)); };
  CHECK(draw("seed: 5") == draw("seed: 5"));
  CHECK(draw("seed: 5") != draw("seed: 6"));
  CHECK(draw("probability: 1").size() == 64 * 63 / 2);
  const auto half = static_cast<double>(draw("probability: 0.5").size());
  CHECK(std::abs(half - 1008) < 5 * 22.5);  // 2016 pairs: standard deviation 22.4
}

TEST_CASE("a rank's row of W") {
  const Topology t = test::build(5, "ring", "uniform");
  const Neighbourhood row = t.neighbourhood(4);
  CHECK(row.rank == 4);
  CHECK(row.neighbours == std::vector<int>{0, 3});
  CHECK(row.weights == std::vector<double>{1.0 / 3, 1.0 / 3});
  CHECK(row.self_weight == 1.0 / 3);
  CHECK(t.directed_edges() == 10);
  CHECK(t.ranks() == 5);
  CHECK_THROWS_AS(t.neighbourhood(5), std::logic_error);

  const Neighbourhood alone = test::build(1, "ring", "uniform").neighbourhood(0);
  CHECK(alone.neighbours.empty());
  CHECK(alone.self_weight == 1.0);
}

TEST_CASE("degrees and positions in lists are those of the lists") {
  const Topology path = test::build(6, "path", "metropolis"), star = test::build(6, "star", "metropolis"),
                 turning = test::build(6, "one_peer_exponential", "uniform"), all = TopologyPlan::everybody().build(6);
  for (const Topology* t : {&path, &star, &turning, &all})
    for (int rank = 0; rank < t->ranks(); ++rank) {
      const std::vector<int> neighbours = t->neighbourhood(rank).neighbours;
      CHECK(t->degree(rank) == neighbours.size());
      for (std::size_t e = 0; e < neighbours.size(); ++e) CHECK(t->slot(rank, neighbours[e]) == e);
    }
}

TEST_CASE("everybody is the complete graph with weights 1/P, without its edges in memory") {
  for (const int ranks : {1, 2, 3, 7, 16}) {
    const Topology all = TopologyPlan::everybody().build(ranks), complete = test::build(ranks, "complete", "uniform");
    CHECK(boost::num_edges(all.graph) == 0);
    CHECK(all.ranks() == ranks);
    CHECK(all.directed_edges() == complete.directed_edges());
    CHECK(all.edges_in_use() == complete.edges_in_use());
    CHECK(all.graph_name == complete.graph_name);
    CHECK(all.weights_name == complete.weights_name);
    CHECK(std::abs(all.spectrum().gap - complete.spectrum().gap) < 1e-12);
    CHECK(to_dot(all) == to_dot(complete));
    for (int rank = 0; rank < ranks; ++rank) {
      const Neighbourhood a = all.neighbourhood(rank), b = complete.neighbourhood(rank);
      CHECK(a.self_weight == b.self_weight);
      CHECK(a.neighbours == b.neighbours);
      CHECK(a.weights == b.weights);
    }
    CHECK_THROWS_AS(all.neighbourhood(ranks), std::logic_error);
  }
  CHECK_FALSE(TopologyPlan::everybody().changes());
  CHECK_THROWS_AS(TopologyPlan::everybody().build(0), ConfigError);
}

TEST_CASE("Graphviz: every vertex with its self-weight, every edge once with its weight") {
  const std::string dot = to_dot(test::build(4, "ring", "{name: metropolis}"));
  CHECK(dot.starts_with("graph"));
  CHECK(count(dot, "--") == 4);
  CHECK(count(dot, "[label=\"0.333333\"]") == 4);
  CHECK(dot.find("3[label=\"3\\n0.333333\"]") != std::string::npos);
  CHECK(count(to_dot(test::build(1, "ring", "uniform")), "--") == 0);
}

TEST_CASE("Graphviz: a directed graph has an arrow an arc, with its share") {
  const test::TextFile file("0 1\n1 2\n2 0\n0 2\n");
  const Topology t = test::build(3, "{name: edge_list, directed: true, path: " + file.name() + "}", "uniform");
  const std::string dot = to_dot(t);
  CHECK(dot.starts_with("digraph"));
  CHECK(count(dot, "->") == 4);
  CHECK(dot.find("0->2 [label=\"0.333333\"]") != std::string::npos);
  CHECK(dot.find("1->2 [label=\"0.5\"]") != std::string::npos);
  CHECK(t.neighbourhood(2).weights == std::vector<double>{1.0 / 3, 0.5});
  CHECK(t.neighbourhood(1).weights == std::vector<double>{1.0 / 3, 0.0});
}

TEST_CASE("the plan reads names and keys, and the defaults are complete") {
  Config config = Config::from_text("graph: {name: torus, rows: 3}");
  const TopologyPlan plan(config);
  config.document().throw_if_invalid();
  CHECK(config.document().dump() == "graph:\n  name: torus\n  rows: 3\nweights:\n  name: metropolis\n");
  const Topology t = plan.build(12);
  CHECK(t.graph_name == "torus");
  CHECK(t.weights_name == "metropolis");
}

TEST_CASE("a wrong name is reported at its place, with the nearest one") {
  Config config = Config::from_text("graph: {name: tours}\nweights: {name: metropolis, size: 3}", "f");
  const TopologyPlan plan(config);
  const auto message = test::message_of<ConfigError>([&] { config.document().throw_if_invalid(); });
  CHECK(message.find("f:1:15: graph.name: unknown 'tours'; known: ring, ") != std::string::npos);
  CHECK(message.find("did you mean 'torus'?") != std::string::npos);
  CHECK(message.find("f:2:29: weights.size: unknown key") != std::string::npos);
}

TEST_CASE("an edge list with weights serves the graph and the weights") {
  const test::TextFile file("# a path of three\n0 1 0.25  # light\n\n2 1 0.5\n0 0 0.75\n1 1 0.25\n2 2 0.5\n");
  const Topology t = test::build(3, file.entry(), file.entry());
  CHECK(edges_of(t.graph) == Edges{{0, 1}, {1, 2}});
  CHECK(t.matrix(1, 0) == 0.25);
  CHECK(t.matrix(1, 2) == 0.5);
  CHECK(t.matrix(0, 0) == 0.75);
  CHECK(t.spectrum().gap > 0.1);

  const test::TextFile without_self("0 1 0.25\n1 2 0.5\n");
  CHECK(test::build(3, without_self.entry(), without_self.entry()).matrix(0, 0) == 0.75);
}

}  // namespace hearsay::topology_test

// What every graph and every weight rule must hold, over both tables: an entry is tested by being there.
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::contract_test {
namespace {

const std::vector<int> sizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};

std::optional<Graph> graph_if_it_fits(const GraphEntry& entry, int ranks) {
  Config config;
  try {
    return entry.make(config)->build(ranks);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

bool is_regular(const Graph& graph) {
  std::set<std::size_t> degrees;
  for (std::size_t v = 0; v < boost::num_vertices(graph); ++v) degrees.insert(boost::out_degree(v, graph));
  return degrees.size() == 1;
}

/// Vertices that can be reached from vertex 0.
std::size_t reached(const Graph& graph) {
  std::set<std::size_t> seen{0};
  std::vector<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t v = open.back();
    open.pop_back();
    for (const auto w : boost::make_iterator_range(boost::adjacent_vertices(v, graph)))
      if (seen.insert(w).second) open.push_back(w);
  }
  return seen.size();
}

void check_mixing_matrix(const MixingMatrix& w, const Graph& graph) {
  for (int i = 0; i < w.size(); ++i) {
    double row = 0.0;
    for (int j = 0; j < w.size(); ++j) {
      row += w(i, j);
      CHECK(w(i, j) == w(j, i));
      const bool edge = boost::edge(static_cast<std::size_t>(i), static_cast<std::size_t>(j), graph).second;
      if (i != j) CHECK((edge ? w(i, j) > 0.0 : w(i, j) == 0.0));
    }
    CHECK(row == doctest::Approx(1.0).epsilon(1e-12));
  }
  CHECK_NOTHROW(w.check(graph));
}

bool is_directed(const GraphEntry& entry) {
  Config config;
  return entry.make(config)->directed();
}

/// Columns sum to 1, and every rank's row says who sends to it and whom it sends to.
void check_shares(const Topology& t) {
  std::int64_t arcs = 0;
  for (int j = 0; j < t.ranks(); ++j) {
    double column = 0.0;
    for (int i = 0; i < t.ranks(); ++i) column += t.matrix(i, j);
    CHECK(column == doctest::Approx(1.0).epsilon(1e-12));
    CHECK(t.matrix(j, j) > 0.0);
    const Neighbourhood own = t.neighbourhood(j);
    std::size_t sends = 0;
    for (std::size_t e = 0; e < own.neighbours.size(); ++e) {
      CHECK(own.sends_to(e) == (t.matrix(own.neighbours[e], j) > 0.0));
      CHECK(own.share_to(e) == t.matrix(own.neighbours[e], j));
      sends += own.sends_to(e) ? 1 : 0;
      CHECK(own.hears(e) == (t.matrix(j, own.neighbours[e]) > 0.0));
      CHECK((own.sends_to(e) || own.hears(e)));
      arcs += own.sends_to(e) ? 1 : 0;
    }
    CHECK(own.sends() == sends);
  }
  CHECK(t.directed_edges() == arcs);
  CHECK(t.edges_in_use() == arcs);
}

void check_spectrum(const Spectrum& s) {
  CHECK(s.contraction <= 1.0 + 1e-12);
  CHECK(s.gap > 1e-6);
  CHECK(s.gap == 1.0 - s.contraction);
  CHECK(s.contraction == std::max(std::abs(s.second), std::abs(s.smallest)));
  CHECK(s.smallest <= s.second);
}

}  // namespace

TEST_CASE("every entry says what it is, and its name is its own") {
  const auto check = [](const auto& table) {
    std::set<std::string_view> names;
    for (const auto& entry : table) {
      CAPTURE(entry.name);
      CHECK(names.insert(entry.name).second);
      for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
        CHECK_FALSE(text.empty());
      CHECK(entry.summary.find('\n') == std::string_view::npos);
    }
  };
  check(graphs());
  check(weight_rules());
  CHECK(graphs().size() >= 10);
  CHECK(weight_rules().size() >= 5);
}

TEST_CASE("every graph is connected and simple, and of one vertex for one rank") {
  for (const GraphEntry& entry : graphs()) {
    CAPTURE(entry.name);
    for (const int ranks : sizes) {
      CAPTURE(ranks);
      const auto graph = graph_if_it_fits(entry, ranks);
      if (ranks == 1) REQUIRE(graph);
      if (!graph) continue;
      CHECK(boost::num_vertices(*graph) == static_cast<std::size_t>(ranks));
      CHECK(reached(*graph) == static_cast<std::size_t>(ranks));
      for (const auto edge : boost::make_iterator_range(boost::edges(*graph)))
        CHECK(boost::source(edge, *graph) != boost::target(edge, *graph));
    }
    Config config;
    CHECK_THROWS_AS(entry.make(config)->build(0), ConfigError);
  }
}

TEST_CASE("every weight rule on every graph: doubly stochastic, or shares of all, on the edges only, contracting") {
  int built = 0;
  for (const GraphEntry& graph_entry : graphs())
    for (const WeightEntry& weight_entry : weight_rules())
      for (const int ranks : sizes) {
        const auto graph = graph_if_it_fits(graph_entry, ranks);
        if (!graph) continue;
        CAPTURE(graph_entry.name);
        CAPTURE(weight_entry.name);
        CAPTURE(ranks);
        const auto plan = [&] {
          return test::build(ranks, std::string(graph_entry.name), std::string(weight_entry.name));
        };
        const bool lacks_its_file = weight_entry.name == "edge_list" && ranks > 1;
        if (lacks_its_file || (weight_entry.name == "uniform" && !is_directed(graph_entry) && !is_regular(*graph))) {
          CHECK_THROWS_AS(plan(), ConfigError);
          continue;
        }
        if (is_directed(graph_entry) && weight_entry.name != "uniform") {
          CHECK_THROWS_AS(plan(), ConfigError);
          continue;
        }
        const Topology topology = plan();
        if (topology.directed())
          check_shares(topology);
        else
          check_mixing_matrix(topology.matrix, topology.graph);
        check_spectrum(topology.spectrum());
        if (ranks == 1) CHECK((topology.matrix(0, 0) == 1.0 && topology.spectrum().gap == 1.0));
        ++built;
      }
  CHECK(built > 200);
}

TEST_CASE("every phase of a graph that changes is doubly stochastic on its edges, and a period connects all") {
  int changing = 0;
  for (const GraphEntry& entry : graphs())
    for (const int ranks : sizes) {
      Config config;
      const auto family = entry.make(config);
      if (!graph_if_it_fits(entry, ranks) || family->phases(ranks).empty()) continue;
      CAPTURE(entry.name);
      CAPTURE(ranks);
      ++changing;
      const Topology t = test::build(ranks, std::string(entry.name), "uniform");
      CHECK(t.period() == static_cast<std::int64_t>(t.phases.size()));
      CHECK(t.edges_in_use() == ranks);
      for (std::size_t k = 0; k < t.phases.size(); ++k) {
        const MixingMatrix w = phase_matrix(t.phases[k], t.phase_weight);
        for (int i = 0; i < ranks; ++i) {
          double row = 0.0, column = 0.0;
          for (int j = 0; j < ranks; ++j) {
            row += w(i, j), column += w(j, i);
            const bool edge = boost::edge(static_cast<std::size_t>(i), static_cast<std::size_t>(j), t.graph).second;
            if (i != j && w(i, j) != 0.0) CHECK(edge);
          }
          CHECK(row == 1.0);
          CHECK(column == 1.0);
          const Neighbourhood own = t.neighbourhood(i);
          CHECK(own.sends() == 1);
          CHECK(own.neighbours[own.phases[k].to] == t.phases[k][static_cast<std::size_t>(i)]);
          CHECK(w(i, own.neighbours[own.phases[k].from]) == own.phase_weight);
        }
      }
    }
  CHECK(changing >= 10);
}

TEST_CASE("a phase that is no permutation, or keeps a rank to itself, is a bug") {
  CHECK_NOTHROW(require_permutation({1, 2, 0}));
  CHECK_THROWS_AS(require_permutation({1, 1, 0}), std::logic_error);
  CHECK_THROWS_AS(require_permutation({1, 0, 2}), std::logic_error);
  CHECK_THROWS_AS(require_permutation({1, 3, 0}), std::logic_error);
}

TEST_CASE("the sizes that each family has") {
  const std::map<std::string, std::set<int>> some{{"torus", {1, 9, 12, 15, 16}},
                                                  {"grid", {1, 4, 6, 8, 9, 10, 12, 14, 15, 16}},
                                                  {"hypercube", {1, 2, 4, 8, 16}},
                                                  {"edge_list", {1}}};
  for (const GraphEntry& entry : graphs())
    for (int ranks = 1; ranks <= 16; ++ranks) {
      CAPTURE(entry.name);
      CAPTURE(ranks);
      const auto found = some.find(std::string(entry.name));
      CHECK(graph_if_it_fits(entry, ranks).has_value() == (found == some.end() || found->second.contains(ranks)));
    }
}

TEST_CASE("mixing random graphs keeps the mean and shrinks differences by the contraction at least") {
  CHECK(rc::check("contraction", [] {
    const int ranks = *rc::gen::inRange(2, 20);
    const int seed = *rc::gen::inRange(0, 1 << 20);
    const std::string rule = *rc::gen::element<std::string>("metropolis", "max_degree", "best_constant");
    const Topology t = test::build(ranks, "{name: erdos_renyi, seed: " + std::to_string(seed) + "}", rule);
    Random random(static_cast<std::uint64_t>(seed));
    std::vector<double> x(static_cast<std::size_t>(ranks));
    for (double& value : x) value = random.normal();
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / ranks;
    double mixed_mean = 0.0;
    double before = 0.0;
    double after = 0.0;
    for (int i = 0; i < ranks; ++i) {
      const Neighbourhood row = t.neighbourhood(i);
      double mixed = row.self_weight * x[static_cast<std::size_t>(i)];
      for (std::size_t n = 0; n < row.neighbours.size(); ++n)
        mixed += row.weights[n] * x[static_cast<std::size_t>(row.neighbours[n])];
      mixed_mean += mixed / ranks;
      after += (mixed - mean) * (mixed - mean);
      before += (x[static_cast<std::size_t>(i)] - mean) * (x[static_cast<std::size_t>(i)] - mean);
    }
    RC_ASSERT(std::abs(mixed_mean - mean) < 1e-12);
    RC_ASSERT(std::sqrt(after) <= t.spectrum().contraction * std::sqrt(before) + 1e-12);
  }));
}

TEST_CASE("no constant weight beats best_constant") {
  CHECK(rc::check("gap", [] {
    const int ranks = *rc::gen::inRange(2, 20);
    const std::string graph = "{name: erdos_renyi, seed: " + std::to_string(*rc::gen::inRange(0, 1 << 20)) + "}";
    const Topology best = test::build(ranks, graph, "best_constant");
    const double alpha = *rc::gen::inRange(1, 1000) / 1000.0;
    MixingMatrix other(ranks);
    for (int i = 0; i < ranks; ++i) {
      const Neighbourhood row = best.neighbourhood(i);
      other(i, i) = 1.0 - alpha * static_cast<double>(row.neighbours.size());
      for (const int j : row.neighbours) other(i, j) = alpha;
    }
    RC_ASSERT(spectrum(other).gap <= best.spectrum().gap + 1e-12);
  }));
}

}  // namespace hearsay::contract_test

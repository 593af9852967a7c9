// Erdős–Rényi random graph G(P, p): every pair is an edge with the same probability, independently.
//
//   {i, j} is an edge if uniform() < p, i < j in lexicographic order
//
// Source: gilbert1959random (the form with p); erdos1959random.
// Deviates from the paper in: drawn again, with a derived seed, until the graph is connected.
// Cost: p(P−1) neighbours a rank on average, pP(P−1)/2 edges; P(P−1)/2 random numbers a draw.
//
// The pairs are drawn one by one rather than by Boost's erdos_renyi_iterator, whose distributions may change between
// versions: every rank, and every later run, must draw the same graph.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

constexpr std::uint64_t most_draws = 100;

class ErdosRenyi final : public GraphFamily {
 public:
  ErdosRenyi(double probability, std::uint64_t seed) : probability_(probability), seed_(seed) {}

  Graph build(int ranks) const override {
    const double p = probability_ > 0.0 ? probability_ : default_probability(ranks);
    require_few_edges("erdos_renyi", ranks, p * 0.5 * ranks * (ranks - 1.0));  // on average
    for (std::uint64_t draw = 0; draw < most_draws; ++draw) {
      Graph graph = sample(ranks, p, stream_seed(seed_, "erdos_renyi", draw));
      if (is_connected(graph)) return graph;
    }
    throw ConfigError("topology.graph.probability: " + std::to_string(p) + " left the erdos_renyi graph of " +
                      std::to_string(ranks) + " ranks disconnected in " + std::to_string(most_draws) +
                      " draws; raise it to " + std::to_string(default_probability(ranks)) + " (2 ln P / P) or more");
  }

 private:
  /// Twice the threshold ln P / P above which G(P, p) is connected almost surely.
  static double default_probability(int ranks) {
    return ranks < 3 ? 1.0 : std::min(1.0, 2.0 * std::log(ranks) / ranks);
  }

  static Graph sample(int ranks, double p, std::uint64_t seed) {
    Graph graph = isolated_vertices(ranks);
    Random random(seed);
    for (int i = 0; i < ranks; ++i)
      for (int j = i + 1; j < ranks; ++j)
        if (random.uniform() < p) boost::add_edge(i, j, graph);
    return graph;
  }

  double probability_;  // 0: default_probability
  std::uint64_t seed_;
};

std::unique_ptr<GraphFamily> make_erdos_renyi(Config& config) {
  const double probability =
      config.real("probability", 0.0, Range::between(0.0, 1.0), "p of an edge; 0: 2 ln P / P, connected almost surely");
  const std::int64_t seed = config.integer("seed", 0, Range::at_least(0), "which random graph");
  return std::make_unique<ErdosRenyi>(probability, static_cast<std::uint64_t>(seed));
}

}  // namespace

GraphEntry erdos_renyi_graph() {
  return {.name = "erdos_renyi",
          .summary = "every pair is an edge with the same probability; drawn until connected",
          .equation = "{i, j} is an edge if uniform() < probability",
          .cost = "probability · (P-1) neighbours a rank on average; P(P-1)/2 random numbers a draw",
          .citation = "gilbert1959random; erdos1959random",
          .make = make_erdos_renyi};
}

}  // namespace hearsay

// Uniform weights: the plain mean of a rank and its neighbours.
//
//   w_ij = w_ii = 1 / (degree + 1)
//   directed: w_ij = w_jj = 1 / (targets of j + 1), the share of what j has that goes to i
//
// Source: lian2017dpsgd (ring, 1/3); ghosh2021eventgrad, section 3. Directed: nedic2016push; assran2019sgp, section 3.
// Deviates from the paper in: nothing. Rows sum to 1 on any graph, columns on regular graphs only; others are refused.
// The columns of shares sum to 1 on any graph.
// Cost: O(edges), once.
#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Uniform final : public WeightRule {
 public:
  MixingMatrix weigh(const Graph& graph) const override {
    const int ranks = vertex_count(graph);
    require_regular(graph, ranks);
    MixingMatrix matrix(ranks);
    for (int i = 0; i < ranks; ++i) {
      const double weight = 1.0 / (degree(graph, i) + 1);
      matrix(i, i) = weight;
      for (const auto j : boost::make_iterator_range(boost::adjacent_vertices(i, graph)))
        matrix(i, static_cast<int>(j)) = weight;
    }
    return matrix;
  }
  MixingMatrix share(const Targets& targets) const override {
    MixingMatrix shares(static_cast<int>(targets.size()));
    for (int j = 0; j < shares.size(); ++j) {
      const auto& of_rank = targets[static_cast<std::size_t>(j)];
      const double share = 1.0 / (static_cast<double>(of_rank.size()) + 1.0);
      shares(j, j) = share;
      for (const int i : of_rank) shares(i, j) = share;
    }
    return shares;
  }

 private:
  static void require_regular(const Graph& graph, int ranks) {
    for (int i = 1; i < ranks; ++i)
      if (degree(graph, i) != degree(graph, 0))
        throw ConfigError(
            "topology.weights 'uniform': 1/(degree + 1) is doubly stochastic only if all ranks have equally "
            "many neighbours, but rank 0 has " +
            std::to_string(degree(graph, 0)) + " and rank " + std::to_string(i) + " has " +
            std::to_string(degree(graph, i)) + "; use weights: {name: metropolis}");
  }
};

std::unique_ptr<WeightRule> make_uniform(Config&) { return std::make_unique<Uniform>(); }

}  // namespace

WeightEntry uniform_weights() {
  return {.name = "uniform",
          .summary = "the plain mean of a rank and its neighbours; regular or directed graphs only",
          .equation = "w_ij = w_ii = 1 / (degree + 1); directed: w_ij = w_jj = 1 / (targets of j + 1)",
          .cost = "O(edges) once",
          .citation = "lian2017dpsgd; ghosh2021eventgrad, section 3; assran2019sgp, section 3",
          .make = make_uniform};
}

}  // namespace hearsay

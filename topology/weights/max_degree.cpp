// Maximum-degree weights: one weight for all edges, small enough for the best connected rank.
//
//   w_ij = 1 / (1 + max_l degree_l),   w_ii = 1 − Σ_j w_ij
//
// Source: xiao2005scheme (maximum-degree weights); xiao2004fast.
// Deviates from the paper in: the 1 in the denominator (xiao2004fast has 1 / max degree), without which bipartite
// regular graphs such as even rings have gap 0.
// Cost: O(edges), once; every rank needs the largest degree of the graph.
#include <algorithm>

#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class MaxDegree final : public WeightRule {
 public:
  MixingMatrix weigh(const Graph& graph) const override {
    MixingMatrix matrix(vertex_count(graph));
    int most = 0;
    for (int i = 0; i < matrix.size(); ++i) most = std::max(most, degree(graph, i));
    for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
      const auto i = static_cast<int>(boost::source(edge, graph));
      const auto j = static_cast<int>(boost::target(edge, graph));
      matrix(i, j) = matrix(j, i) = 1.0 / (1 + most);
    }
    fill_diagonal(matrix);
    return matrix;
  }
};

std::unique_ptr<WeightRule> make_max_degree(Config&) { return std::make_unique<MaxDegree>(); }

}  // namespace

WeightEntry max_degree_weights() {
  return {.name = "max_degree",
          .summary = "one weight for all edges, from the best connected rank; any graph",
          .equation = "w_ij = 1 / (1 + max_l degree_l); w_ii = 1 - Σ_j w_ij",
          .cost = "O(edges) once",
          .citation = "xiao2005scheme (maximum-degree weights); xiao2004fast",
          .make = make_max_degree};
}

}  // namespace hearsay

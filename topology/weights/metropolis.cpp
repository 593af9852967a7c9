// Metropolis–Hastings weights, lazy form: the better connected end of an edge decides.
//
//   w_ij = 1 / (1 + max(degree_i, degree_j)),   w_ii = 1 − Σ_j w_ij
//
// Source: xiao2005scheme (Metropolis weights).
// Deviates from the paper in: nothing. The form without the 1 (boyd2004fastest) has gap 0 on bipartite regular graphs
// such as even rings and is not offered.
// Cost: O(edges), once; every rank needs only its neighbours' degrees.
#include <algorithm>

#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Metropolis final : public WeightRule {
 public:
  MixingMatrix weigh(const Graph& graph) const override {
    MixingMatrix matrix(vertex_count(graph));
    for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
      const auto i = static_cast<int>(boost::source(edge, graph));
      const auto j = static_cast<int>(boost::target(edge, graph));
      matrix(i, j) = matrix(j, i) = 1.0 / (1 + std::max(degree(graph, i), degree(graph, j)));
    }
    fill_diagonal(matrix);
    return matrix;
  }
};

std::unique_ptr<WeightRule> make_metropolis(Config&) { return std::make_unique<Metropolis>(); }

}  // namespace

WeightEntry metropolis_weights() {
  return {.name = "metropolis",
          .summary = "the better connected end of an edge decides; any graph",
          .equation = "w_ij = 1 / (1 + max(degree_i, degree_j)); w_ii = 1 - Σ_j w_ij",
          .cost = "O(edges) once",
          .citation = "xiao2005scheme (Metropolis weights)",
          .make = make_metropolis};
}

}  // namespace hearsay

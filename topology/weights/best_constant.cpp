// Best constant weights: the one weight for all edges that makes the spectral gap largest.
//
//   W = I − α L,   L = the graph's Laplacian,   α = 2 / (λ_2(L) + λ_n(L)),   ρ = (λ_n − λ_2) / (λ_n + λ_2)
//
// Source: xiao2004fast (best constant edge weight).
// Deviates from the paper in: nothing. Self-weights may be negative (a star of more than three ranks): W is still
// symmetric, doubly stochastic and contracting, but x_i is then not a mean of its neighbours' models.
// Cost: two eigenvalues of a P × P matrix on every rank: O(P³) up to 256 ranks, above that some P passes over the edges
// at most (topology/spectrum.cpp).
#include "topology/graph_tools.hpp"
#include "topology/spectrum.hpp"

namespace hearsay {
namespace {

class BestConstant final : public WeightRule {
 public:
  MixingMatrix weigh(const Graph& graph) const override {
    MixingMatrix matrix(vertex_count(graph));
    const double weight = matrix.size() == 1 ? 0.0 : best_weight(graph);
    for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
      const auto i = static_cast<int>(boost::source(edge, graph));
      const auto j = static_cast<int>(boost::target(edge, graph));
      matrix(i, j) = matrix(j, i) = weight;
    }
    fill_diagonal(matrix);
    return matrix;
  }

 private:
  /// α; the graph is connected and has at least two vertices, so that λ_2(L) > 0.
  static double best_weight(const Graph& graph) {
    MixingMatrix laplacian(vertex_count(graph));
    for (int i = 0; i < laplacian.size(); ++i) {
      laplacian(i, i) = degree(graph, i);
      for (const auto j : boost::make_iterator_range(boost::adjacent_vertices(static_cast<std::size_t>(i), graph)))
        laplacian(i, static_cast<int>(j)) = -1.0;
    }
    const Ends eigenvalues = ends_on_differences(laplacian);
    return 2.0 / (eigenvalues.least + eigenvalues.most);
  }
};

std::unique_ptr<WeightRule> make_best_constant(Config&) { return std::make_unique<BestConstant>(); }

}  // namespace

WeightEntry best_constant_weights() {
  return {.name = "best_constant",
          .summary = "the one weight for all edges with the largest spectral gap; any graph",
          .equation = "W = I - α L; α = 2 / (λ_2(L) + λ_n(L)), L the Laplacian",
          .cost = "two eigenvalues of a P × P matrix, once a rank",
          .citation = "xiao2004fast (best constant edge weight)",
          .make = make_best_constant};
}

}  // namespace hearsay

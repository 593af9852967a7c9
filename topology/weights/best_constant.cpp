// Best constant weights: the one weight for all edges that makes the spectral gap largest.
//
//   W = I − α L,   L = the graph's Laplacian,   α = 2 / (λ_2(L) + λ_n(L)),   ρ = (λ_n − λ_2) / (λ_n + λ_2)
//
// Source: xiao2004fast (best constant edge weight).
// Deviates from the paper in: nothing. Self-weights may be negative (a star of more than three ranks): W is still
// symmetric, doubly stochastic and contracting, but x_i is then not a mean of its neighbours' models.
// Cost: the eigenvalues of a P × P matrix, O(P³), once.
#include <Eigen/Eigenvalues>

#include "topology/graph_tools.hpp"

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
    const int ranks = vertex_count(graph);
    Eigen::MatrixXd laplacian = Eigen::MatrixXd::Zero(ranks, ranks);
    for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
      const auto i = static_cast<Eigen::Index>(boost::source(edge, graph));
      const auto j = static_cast<Eigen::Index>(boost::target(edge, graph));
      laplacian(i, j) = laplacian(j, i) = -1.0;
      laplacian(i, i) += 1.0;
      laplacian(j, j) += 1.0;
    }
    const Eigen::VectorXd eigenvalues =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(laplacian, Eigen::EigenvaluesOnly).eigenvalues();  // ascending
    return 2.0 / (eigenvalues(1) + eigenvalues(ranks - 1));
  }
};

std::unique_ptr<WeightRule> make(Config&) { return std::make_unique<BestConstant>(); }

}  // namespace

WeightEntry best_constant_weights() {
  return {.name = "best_constant",
          .summary = "the one weight for all edges with the largest spectral gap; any graph",
          .equation = "W = I - α L; α = 2 / (λ_2(L) + λ_n(L)), L the Laplacian",
          .cost = "the eigenvalues of a P × P matrix, O(P³), once",
          .citation = "xiao2004fast (best constant edge weight)",
          .make = make};
}

}  // namespace hearsay

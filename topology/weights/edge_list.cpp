// Weights of one's own, from a text file.
//
//   one line `i j w` an edge: w_ij = w_ji = w;   `i i w`: w_ii = w, for every rank or for none
//   without self-weights: w_ii = 1 − Σ_j w_ij
//
// The file may be the one that the graph `edge_list` is read from; `#` starts a comment. Source: the file.
// Deviates from the paper in: nothing. W is checked like every other: symmetric, doubly stochastic, positive on the
// graph's edges and zero elsewhere, with a spectral gap.
// Cost: O(edges), once.
#include <algorithm>

#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class EdgeListWeights final : public WeightRule {
 public:
  explicit EdgeListWeights(std::filesystem::path file) : file_(std::move(file)) {}

  MixingMatrix weigh(const Graph& graph) const override {
    MixingMatrix matrix(vertex_count(graph));
    if (matrix.size() == 1) {
      matrix(0, 0) = 1.0;
      return matrix;
    }
    if (file_.empty()) throw ConfigError("topology.weights.path: the weights 'edge_list' need a file of `i j w` lines");
    std::vector<bool> has_self_weight(static_cast<std::size_t>(matrix.size()));
    for (const EdgeLine& edge : read_edge_list(file_, matrix.size())) {
      if (!edge.weight)
        throw DataError(file_.string() + ":" + std::to_string(edge.line) + ": expected `i j w`, got no weight");
      matrix(edge.i, edge.j) = matrix(edge.j, edge.i) = *edge.weight;
      if (edge.i == edge.j) has_self_weight[static_cast<std::size_t>(edge.i)] = true;
    }
    settle_diagonal(matrix, has_self_weight);
    return matrix;
  }

 private:
  void settle_diagonal(MixingMatrix& matrix, const std::vector<bool>& has_self_weight) const {
    const auto given = std::find(has_self_weight.begin(), has_self_weight.end(), true);
    const auto missing = std::find(has_self_weight.begin(), has_self_weight.end(), false);
    if (given == has_self_weight.end()) return fill_diagonal(matrix);
    if (missing != has_self_weight.end())
      throw DataError(file_.string() + ": rank " + std::to_string(given - has_self_weight.begin()) +
                      " has a self-weight, rank " + std::to_string(missing - has_self_weight.begin()) +
                      " has none; give `i i w` for every rank or for none");
  }

  std::filesystem::path file_;
};

std::unique_ptr<WeightRule> make_edge_list_weights(Config& config) {
  return std::make_unique<EdgeListWeights>(config.path("path", "", "text file, one line `i j w` an edge"));
}

}  // namespace

WeightEntry edge_list_weights() {
  return {.name = "edge_list",
          .summary = "weights of your own from a text file",
          .equation = "one line `i j w` an edge: w_ij = w_ji = w; `i i w`: w_ii, else w_ii = 1 - Σ_j w_ij",
          .cost = "O(edges) once",
          .citation = "the file",
          .make = make_edge_list_weights};
}

}  // namespace hearsay

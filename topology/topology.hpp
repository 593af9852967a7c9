#pragma once
// Who may talk to whom, and how much each neighbour's model counts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "runtime/base/table.hpp"

namespace hearsay {

/// Undirected, simple, without self-loops; vertex = rank. An edge {i, j} stands for the two directed edges i→j and j→i.
using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::undirectedS>;

/// Builds a connected graph for a number of ranks. P = 1 is the graph of one vertex for every family.
class GraphFamily {
 public:
  virtual ~GraphFamily() = default;
  /// Throws ConfigError if this family has no graph of that size (a torus of 7) or it is not connected.
  virtual Graph build(int ranks) const = 0;
};

/// W, the symmetric mixing matrix: x_i ← Σ_j w_ij x_j. Dense, P × P.
class MixingMatrix {
 public:
  explicit MixingMatrix(int size) : size_(size), entries_(static_cast<std::size_t>(size) * size, 0.0) {}
  int size() const { return size_; }
  double& operator()(int i, int j) { return entries_[static_cast<std::size_t>(i) * size_ + j]; }
  double operator()(int i, int j) const { return entries_[static_cast<std::size_t>(i) * size_ + j]; }

  /// Throws ConfigError unless W is symmetric, doubly stochastic to 1e-9 and w_ij ≠ 0 only on edges of `graph` and the
  /// diagonal, with w_ij > 0 on every edge; the message names the worst row or entry.
  void check(const Graph& graph) const;

 private:
  int size_;
  std::vector<double> entries_;
};

/// Gives every edge its weight.
class WeightRule {
 public:
  virtual ~WeightRule() = default;
  virtual MixingMatrix weigh(const Graph& graph) const = 0;
};

/// What the eigenvalues of W say about how fast differences between replicas die out.
struct Spectrum {
  double second;       ///< λ_2, the second largest eigenvalue (0 for P = 1)
  double smallest;     ///< λ_n
  double contraction;  ///< ρ = max(|λ_2|, |λ_n|): ‖x − x̄‖ shrinks by ρ per mixing, at worst
  double gap;          ///< 1 − ρ, the spectral gap
};
Spectrum spectrum(const MixingMatrix& matrix);

/// One rank's row of W: all that a rank has to know of the graph.
struct Neighbourhood {
  int rank = 0;
  double self_weight = 1.0;
  std::vector<int> neighbours;  ///< ascending; in- and out-neighbours are the same (undirected graphs)
  std::vector<double> weights;  ///< w_ij, in the order of `neighbours`

  /// Where `neighbour` stands in `neighbours`.
  std::size_t slot(int neighbour) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(neighbours, neighbour) - neighbours.begin());
  }
};

/// A checked graph with its weights.
struct Topology {
  Graph graph;
  MixingMatrix matrix;
  Spectrum spectrum;
  std::string graph_name, weights_name;

  int ranks() const { return matrix.size(); }
  std::int64_t directed_edges() const { return 2 * static_cast<std::int64_t>(boost::num_edges(graph)); }
  Neighbourhood neighbourhood(int rank) const;
};

using GraphEntry = Entry<GraphFamily>;
using WeightEntry = Entry<WeightRule>;
std::span<const GraphEntry> graphs();
std::span<const WeightEntry> weight_rules();

/// Reads `{graph: {name, …}, weights: {name, …}}` and returns a function object that can be built for any P once the
/// configuration is known to be valid.
class TopologyPlan {
 public:
  explicit TopologyPlan(Config& config);
  /// Builds and checks graph and W. Throws ConfigError (P does not fit, not connected, not stochastic).
  Topology build(int ranks) const;

 private:
  std::string graph_name_, weights_name_;
  std::unique_ptr<GraphFamily> family_;
  std::unique_ptr<WeightRule> rule_;
};

/// The graph in Graphviz's language, undirected, edges labelled with w_ij.
std::string to_dot(const Topology& topology);

}  // namespace hearsay

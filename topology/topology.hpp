#pragma once
// Who may talk to whom, and how much each neighbour's model counts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "base/config/table.hpp"

namespace hearsay {

/// Undirected, simple, without self-loops; vertex = rank. An edge {i, j} stands for the two directed edges i→j and j→i.
using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::undirectedS>;

/// One iteration of a graph that changes: rank i sends to rank `phase[i]` and to nobody else. A permutation without
/// fixed points, so that W_t = (1 − w) I + w Π_t is doubly stochastic whatever the weight w is.
using GraphPhase = std::vector<int>;

/// Whom every rank of a directed graph sends to, ascending, itself left out.
using Targets = std::vector<std::vector<int>>;

/// Builds a connected graph for a number of ranks. P = 1 is the graph of one vertex for every family.
class GraphFamily {
 public:
  virtual ~GraphFamily() = default;
  /// Throws ConfigError if this family has no graph of that size (a torus of 7) or it is not connected.
  virtual Graph build(int ranks) const = 0;
  /// One period of a graph that changes from iteration to iteration; `build` is then the union of its phases. Empty
  /// where the graph stays as it is, and for one rank.
  virtual std::vector<GraphPhase> phases(int ranks) const {
    static_cast<void>(ranks);
    return {};
  }
  /// Whether edges count one way only; `targets` then says which, and `build` is the union of both ways.
  virtual bool directed() const { return false; }
  virtual Targets targets(int ranks) const {
    static_cast<void>(ranks);
    return {};
  }
};

/// W, the symmetric mixing matrix: x_i ← Σ_j w_ij x_j. P × P, of which only what was written is stored. Of a directed
/// graph it is not symmetric, and w_ij is the share of what j has that goes to i.
class MixingMatrix {
 public:
  struct Weight {
    int column;
    double value;
  };
  explicit MixingMatrix(int size) : rows_(static_cast<std::size_t>(size)) {}
  int size() const { return static_cast<int>(rows_.size()); }
  /// To be written: stored from now on. O(entries of the row) unless columns come in ascending order.
  double& operator()(int i, int j);
  double operator()(int i, int j) const;
  /// What is stored of row i, ascending by column.
  std::span<const Weight> row(int i) const { return rows_[static_cast<std::size_t>(i)]; }

  /// Throws ConfigError unless W is symmetric, doubly stochastic to 1e-9 and w_ij ≠ 0 only on edges of `graph` and the
  /// diagonal, with w_ij > 0 on every edge; the message names the worst row or entry.
  void check(const Graph& graph) const;
  /// Throws ConfigError unless every column sums to 1 to 1e-9, that is nothing gets lost, and w_ij > 0 exactly where j
  /// sends to i and on the diagonal.
  void check_shares(const Targets& targets) const;

 private:
  std::vector<std::vector<Weight>> rows_;
};

/// Gives every edge its weight.
class WeightRule {
 public:
  virtual ~WeightRule() = default;
  virtual MixingMatrix weigh(const Graph& graph) const = 0;
  /// What of a rank's own goes where in a directed graph. Throws ConfigError where the rule has no answer, as here.
  virtual MixingMatrix share(const Targets& targets) const;
};

/// What the eigenvalues of W say about how fast differences between replicas die out.
struct Spectrum {
  double second;       ///< λ_2, the second largest eigenvalue (0 for P = 1)
  double smallest;     ///< λ_n
  double contraction;  ///< ρ = max(|λ_2|, |λ_n|): ‖x − x̄‖ shrinks by ρ per mixing, at worst
  double gap;          ///< 1 − ρ, the spectral gap
};
// spectrum.cpp, with its costs.
Spectrum spectrum(const MixingMatrix& matrix);
/// The same of a product W_{τ−1} ⋯ W_0, which need not be symmetric: its singular values on differences, `contraction`
/// being what a whole period does.
Spectrum product_spectrum(std::span<const GraphPhase> phases, double weight);
/// The same of the shares of a directed graph: magnitudes of its complex eigenvalues but the 1. `contraction` is the
/// rate in the long run; at first differences may grow.
Spectrum share_spectrum(const MixingMatrix& shares);

// phases.cpp; `weight` is w.
MixingMatrix phase_matrix(const GraphPhase& phase, double weight);
/// The mean of a period, made symmetric: both directions of an edge together.
MixingMatrix mean_matrix(std::span<const GraphPhase> phases, double weight);
/// Throws std::logic_error unless `phase` is a permutation without fixed points.
void require_permutation(const GraphPhase& phase);

/// Whom a rank sends to and hears of in one iteration of a graph that changes, as positions in its list of neighbours.
struct Peer {
  std::size_t to, from;
};

/// One rank's row of W: all that a rank has to know of the graph.
struct Neighbourhood {
  int rank = 0;
  double self_weight = 1.0;
  std::vector<int> neighbours;  ///< ascending; of a directed graph in- and out-neighbours together
  std::vector<double> weights;  ///< w_ij, in the order of `neighbours`; 0 for one that does not send to this rank
  std::vector<Peer> phases{};   ///< of a graph that changes: iteration k has the peer phases[k mod period]
  double phase_weight = 0.0;    ///< ... whose model has this weight
  /// On a directed graph w_ji, the share of what this rank has that goes to each neighbour. Empty: as `weights`.
  std::vector<double> shares{};

  bool sends_to(std::size_t e) const { return shares.empty() || shares[e] > 0.0; }
  /// What of this rank's goes to neighbour e in an iteration that sends to it.
  double share_to(std::size_t e) const {
    if (!phases.empty()) return phase_weight;
    return shares.empty() ? weights[e] : shares[e];
  }
  bool hears(std::size_t e) const { return weights[e] != 0.0; }
  /// Neighbours that an iteration sends to.
  std::size_t sends() const {
    if (!phases.empty()) return 1;
    const auto none = static_cast<std::size_t>(std::ranges::count(shares, 0.0));
    return neighbours.size() - none;
  }
  /// Where `neighbour` stands in `neighbours`.
  std::size_t slot(int neighbour) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(neighbours, neighbour) - neighbours.begin());
  }
};

/// A spectrum, once somebody has asked for it.
struct SolvedOnce {
  std::mutex mutex{};
  std::optional<Spectrum> spectrum{};
};

/// A checked graph with its weights.
struct Topology {
  Graph graph;          ///< without edges where `everybody` is set; of a directed graph both ways together
  MixingMatrix matrix;  ///< of a graph that changes: mean_matrix; empty where `everybody` is set
  std::string graph_name, weights_name;
  /// Iteration k mixes with W_t = phase_matrix(phases[t], phase_weight), t = k mod period.
  std::vector<GraphPhase> phases{};
  double phase_weight = 0.0;
  bool everybody = false;              ///< the complete graph with weights 1/P, of which nothing is stored
  std::optional<std::int64_t> arcs{};  ///< of a directed graph how many: `matrix` holds shares
  std::shared_ptr<SolvedOnce> solved = std::make_shared<SolvedOnce>();  ///< of this graph and its copies

  /// The spectrum of `matrix`; of a graph that changes, of the product of a period. Computed when first asked for, by
  /// any thread.
  const Spectrum& spectrum() const;
  int ranks() const { return static_cast<int>(boost::num_vertices(graph)); }
  bool directed() const { return arcs.has_value(); }
  std::int64_t directed_edges() const {
    if (arcs) return *arcs;
    return everybody ? std::int64_t{ranks()} * (ranks() - 1) : 2 * static_cast<std::int64_t>(boost::num_edges(graph));
  }
  bool changes() const { return !phases.empty(); }
  std::int64_t period() const { return changes() ? static_cast<std::int64_t>(phases.size()) : 1; }
  /// Directed edges that an iteration sends along.
  std::int64_t edges_in_use() const { return changes() ? ranks() : directed_edges(); }
  Neighbourhood neighbourhood(int rank) const;
  /// How many neighbours a rank has, and where one of them stands among these: what others need of its neighbourhood,
  /// without making that.
  std::size_t degree(int rank) const;
  std::size_t slot(int rank, int neighbour) const;
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
  /// Everybody may talk to everybody: the complete graph with uniform weights, without a byte for its P² edges.
  static TopologyPlan everybody();
  /// Builds and checks graph and W. Throws ConfigError (P does not fit, not connected, not stochastic, no gap).
  Topology build(int ranks) const;
  const std::string& graph_name() const { return graph_name_; }
  /// Whether the graph changes from iteration to iteration.
  bool changes() const { return family_ && !family_->phases(2).empty(); }
  /// Whether its edges count one way only: then W is column-stochastic and no more.
  bool directed() const { return family_ && family_->directed(); }

 private:
  TopologyPlan() = default;
  Topology build_directed(int ranks) const;

  std::string graph_name_, weights_name_;
  std::unique_ptr<GraphFamily> family_;  // null: everybody
  std::unique_ptr<WeightRule> rule_;
};

/// The graph in Graphviz's language, edges labelled with w_ij.
std::string to_dot(const Topology& topology);

}  // namespace hearsay

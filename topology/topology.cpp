#include "topology/topology.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include <boost/graph/graphviz.hpp>

#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

constexpr double tolerance = 1e-9;
constexpr double smallest_gap = 1e-10;  // rounding of the eigenvalues is far below; a path of 100,000 ranks is above

std::string number(double x) {
  std::ostringstream text;
  text << std::setprecision(10) << x;
  return text.str();
}

std::string entry_name(int i, int j) { return "w(" + std::to_string(i) + ", " + std::to_string(j) + ")"; }

/// The largest of the things that are wrong, with what to say of it.
struct Worst {
  double excess = tolerance;
  std::string message{};

  template <class Message>
  void consider(double candidate, Message describe) {
    if (candidate <= excess) return;
    excess = candidate;
    message = describe();
  }
  void throw_if_any() const {
    if (!message.empty()) throw ConfigError("topology.weights: " + message);
  }
};

void check_finite(const MixingMatrix& w) {
  for (int i = 0; i < w.size(); ++i)
    for (int j = 0; j < w.size(); ++j)
      if (!std::isfinite(w(i, j)))
        throw ConfigError("topology.weights: " + entry_name(i, j) + " = " + number(w(i, j)) + "; give a finite weight");
}

void check_sums(const MixingMatrix& w) {
  Worst worst;
  for (int i = 0; i < w.size(); ++i) {
    double row = 0.0;
    double column = 0.0;
    for (int j = 0; j < w.size(); ++j) {
      row += w(i, j);
      column += w(j, i);
    }
    const auto describe = [&](const char* which, double sum) {
      return std::string(which) + " " + std::to_string(i) + " of W sums to " + number(sum) +
             ", not to 1; correct its weights or use weights: {name: metropolis}";
    };
    worst.consider(std::abs(row - 1.0), [&] { return describe("row", row); });
    worst.consider(std::abs(column - 1.0), [&] { return describe("column", column); });
  }
  worst.throw_if_any();
}

void check_symmetry(const MixingMatrix& w) {
  Worst worst;
  for (int i = 0; i < w.size(); ++i)
    for (int j = 0; j < i; ++j)
      worst.consider(std::abs(w(i, j) - w(j, i)), [&] {
        return "W is not symmetric: " + entry_name(i, j) + " = " + number(w(i, j)) + ", " + entry_name(j, i) + " = " +
               number(w(j, i)) + "; give both directions of an edge the same weight";
      });
  worst.throw_if_any();
}

void check_support(const MixingMatrix& w, const Graph& graph) {
  const auto refuse = [&](int i, int j, const std::string& why) {
    throw ConfigError("topology.weights: " + entry_name(i, j) + " = " + number(w(i, j)) + why);
  };
  for (int i = 0; i < w.size(); ++i)
    for (int j = 0; j < w.size(); ++j) {
      if (i == j) continue;
      const bool is_edge = boost::edge(static_cast<std::size_t>(i), static_cast<std::size_t>(j), graph).second;
      if (!is_edge && w(i, j) != 0.0) refuse(i, j, ", but the graph has no such edge; add it or leave it out of W");
      if (is_edge && w(i, j) <= 0.0) refuse(i, j, " on an edge of the graph; give it a weight > 0");
    }
}

/// Makes what the section's `name` asks for, and says which that is.
template <class Interface>
std::unique_ptr<Interface> make_chosen(std::span<const Entry<Interface>> table, Config section,
                                       std::string_view fallback, std::string_view meaning, std::string& name) {
  const Entry<Interface>& entry = chosen_entry(table, section, fallback, meaning);
  name = entry.name;
  return entry.make(section);
}

/// What a rank's one peer counts: the two are a graph of their own.
double pair_weight(const WeightRule& rule) {
  Graph pair(2);
  boost::add_edge(0, 1, pair);
  const MixingMatrix matrix = rule.weigh(pair);
  matrix.check(pair);
  return matrix(0, 1);
}

}  // namespace

void MixingMatrix::check(const Graph& graph) const {
  if (vertex_count(graph) != size_) throw std::logic_error("W and the graph differ in size");
  check_finite(*this);
  check_symmetry(*this);
  check_sums(*this);
  check_support(*this, graph);
}

Neighbourhood Topology::neighbourhood(int rank) const {
  if (rank < 0 || rank >= ranks()) throw std::logic_error("no rank " + std::to_string(rank) + " in this topology");
  Neighbourhood row{.rank = rank, .self_weight = matrix(rank, rank), .neighbours = {}, .weights = {}};
  const auto vertex = static_cast<std::size_t>(rank);
  for (const auto j : boost::make_iterator_range(boost::adjacent_vertices(vertex, graph)))
    row.neighbours.push_back(static_cast<int>(j));
  std::sort(row.neighbours.begin(), row.neighbours.end());
  for (const int j : row.neighbours) row.weights.push_back(matrix(rank, j));
  row.turn_weight = turn_weight;
  for (const Turn& turn : turns) {
    const auto from = static_cast<int>(std::ranges::find(turn, rank) - turn.begin());
    row.turns.push_back({.to = row.slot(turn[vertex]), .from = row.slot(from)});
  }
  return row;
}

TopologyPlan::TopologyPlan(Config& config)
    : family_(make_chosen(graphs(), config.section("graph"), "ring", "who may talk to whom", graph_name_)),
      rule_(make_chosen(weight_rules(), config.section("weights"), "metropolis",
                        "how much each neighbour's model counts", weights_name_)) {}

Topology TopologyPlan::build(int ranks) const {
  Graph graph = family_->build(ranks);
  require_connected(graph, "topology.graph '" + graph_name_ + "'");
  std::vector<Turn> turns = family_->turns(ranks);
  std::ranges::for_each(turns, require_permutation);
  const double weight = turns.empty() ? 0.0 : pair_weight(*rule_);
  MixingMatrix matrix = turns.empty() ? rule_->weigh(graph) : mean_matrix(turns, weight);
  matrix.check(graph);
  const Spectrum eigenvalues = turns.empty() ? spectrum(matrix) : product_spectrum(period_product(turns, weight));
  if (eigenvalues.gap < smallest_gap)
    throw ConfigError("topology.weights '" + weights_name_ + "': the spectral gap of W is " + number(eigenvalues.gap) +
                      " (eigenvalues from " + number(eigenvalues.smallest) + " to " + number(eigenvalues.second) +
                      " beside the 1), so that replicas never agree; raise the self-weights");
  return {std::move(graph), std::move(matrix), eigenvalues, graph_name_, weights_name_, std::move(turns), weight};
}

std::string to_dot(const Topology& topology) {
  std::ostringstream out;
  out << std::setprecision(6);
  const auto write_vertex = [&](std::ostream& stream, auto vertex) {
    const auto i = static_cast<int>(vertex);
    stream << "[label=\"" << i << "\\n" << topology.matrix(i, i) << "\"]";
  };
  const auto write_edge = [&](std::ostream& stream, const auto& edge) {
    const auto i = static_cast<int>(boost::source(edge, topology.graph));
    const auto j = static_cast<int>(boost::target(edge, topology.graph));
    stream << "[label=\"" << topology.matrix(i, j) << "\"]";
  };
  boost::write_graphviz(out, topology.graph, write_vertex, write_edge);
  return out.str();
}

}  // namespace hearsay

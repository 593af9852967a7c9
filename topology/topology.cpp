#include "topology/topology.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "base/error.hpp"

namespace hearsay {
namespace {

Neighbourhood all_but(int rank, int ranks) {
  const double weight = 1.0 / ranks;
  Neighbourhood row{.rank = rank, .self_weight = weight, .neighbours = {}, .weights = {}};
  for (int j = 0; j < ranks; ++j)
    if (j != rank) row.neighbours.push_back(j);
  row.weights.assign(row.neighbours.size(), weight);
  return row;
}

}  // namespace

double& MixingMatrix::operator()(int i, int j) {
  std::vector<Weight>& row = rows_[static_cast<std::size_t>(i)];
  const auto found = std::ranges::lower_bound(row, j, {}, &Weight::column);
  if (found != row.end() && found->column == j) return found->value;
  return row.insert(found, {j, 0.0})->value;
}

double MixingMatrix::operator()(int i, int j) const {
  const auto found = std::ranges::lower_bound(row(i), j, {}, &Weight::column);
  return found != row(i).end() && found->column == j ? found->value : 0.0;
}

Neighbourhood Topology::neighbourhood(int rank) const {
  if (rank < 0 || rank >= ranks()) throw std::logic_error("no rank " + std::to_string(rank) + " in this topology");
  if (everybody) return all_but(rank, ranks());
  Neighbourhood row{.rank = rank, .self_weight = matrix(rank, rank), .neighbours = {}, .weights = {}};
  const auto vertex = static_cast<std::size_t>(rank);
  for (const auto j : boost::make_iterator_range(boost::adjacent_vertices(vertex, graph)))
    row.neighbours.push_back(static_cast<int>(j));
  std::sort(row.neighbours.begin(), row.neighbours.end());
  for (const int j : row.neighbours) row.weights.push_back(matrix(rank, j));
  if (directed())
    for (const int j : row.neighbours) row.shares.push_back(matrix(j, rank));
  row.phase_weight = phase_weight;
  for (const GraphPhase& phase : phases) {
    const auto from = static_cast<int>(std::ranges::find(phase, rank) - phase.begin());
    row.phases.push_back({.to = row.slot(phase[vertex]), .from = row.slot(from)});
  }
  return row;
}

std::size_t Topology::degree(int rank) const {
  const auto others = static_cast<std::size_t>(ranks()) - 1;
  return everybody ? others : boost::out_degree(static_cast<std::size_t>(rank), graph);
}

std::size_t Topology::slot(int rank, int neighbour) const {
  const auto among_all = static_cast<std::size_t>(neighbour);
  if (everybody) return neighbour < rank ? among_all : among_all - 1;
  const auto all = boost::make_iterator_range(boost::adjacent_vertices(static_cast<std::size_t>(rank), graph));
  return static_cast<std::size_t>(std::ranges::count_if(all, [&](auto j) { return j < among_all; }));
}

const Spectrum& Topology::spectrum() const {
  const auto solve = [this]() -> Spectrum {
    if (everybody) return {.second = 0.0, .smallest = 0.0, .contraction = 0.0, .gap = 1.0};
    if (directed()) return share_spectrum(matrix);
    return changes() ? product_spectrum(phases, phase_weight) : hearsay::spectrum(matrix);
  };
  const std::scoped_lock lock(solved->mutex);
  if (!solved->spectrum) solved->spectrum = solve();
  return *solved->spectrum;
}

std::string to_dot(const Topology& topology) {
  std::ostringstream vertices, edges;
  vertices << std::setprecision(6);
  edges << std::setprecision(6);
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    vertices << i << "[label=\"" << i << "\\n" << row.self_weight << "\"];\n";
    const std::size_t upwards = topology.directed() ? 0 : row.slot(i);  // of both directions one
    for (std::size_t e = upwards; e < row.neighbours.size(); ++e) {
      if (!row.hears(e)) continue;
      if (topology.directed())
        edges << row.neighbours[e] << "->" << i;
      else
        edges << i << "--" << row.neighbours[e];
      edges << " [label=\"" << row.weights[e] << "\"];\n";
    }
  }
  return std::string(topology.directed() ? "digraph" : "graph") + " G {\n" + vertices.str() + edges.str() + "}\n";
}

}  // namespace hearsay

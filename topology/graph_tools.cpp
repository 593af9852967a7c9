#include "topology/graph_tools.hpp"

#include <algorithm>

#include <boost/graph/connected_components.hpp>
#include <boost/graph/grid_graph.hpp>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// "0, 1, 2, …": at most eight vertices.
std::string listed(const std::vector<int>& vertices) {
  std::string all;
  for (std::size_t n = 0; n < std::min<std::size_t>(vertices.size(), 8); ++n)
    all += (n == 0 ? "" : ", ") + std::to_string(vertices[n]);
  return "{" + all + (vertices.size() > 8 ? ", …" : "") + "}";
}

/// A rank that cannot be reached from rank 0 along the arcs; −1: all can.
int out_of_reach(const Targets& targets) {
  std::vector<bool> seen(targets.size());
  std::vector<int> open{0};
  while (!open.empty()) {
    const auto i = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (seen[i]) continue;
    seen[i] = true;
    open.insert(open.end(), targets[i].begin(), targets[i].end());
  }
  const auto missed = std::ranges::find(seen, false);
  return missed == seen.end() ? -1 : static_cast<int>(missed - seen.begin());
}

std::string nearest_sizes(int ranks, int rows, int shortest) {
  std::string sizes;
  for (int below = ranks - 1; below > 1 && sizes.empty(); --below)
    if (rectangle(below, rows, shortest)) sizes = std::to_string(below) + " or ";
  int above = ranks + 1;
  while (!rectangle(above, rows, shortest)) ++above;
  return sizes + std::to_string(above);
}

}  // namespace

int vertex_count(const Graph& graph) { return static_cast<int>(boost::num_vertices(graph)); }

int degree(const Graph& graph, int vertex) {
  return static_cast<int>(boost::out_degree(static_cast<Graph::vertex_descriptor>(vertex), graph));
}

Graph isolated_vertices(int ranks) {
  if (ranks < 1) throw ConfigError("a graph of " + std::to_string(ranks) + " ranks: give at least 1");
  return Graph(static_cast<std::size_t>(ranks));
}

void require_few_edges(std::string_view name, int ranks, double edges) {
  constexpr std::int64_t most_edges = 10'000'000;  // some 3 GB with their weights, and a minute
  const auto count = static_cast<std::int64_t>(edges);
  if (count > most_edges)
    throw ConfigError("topology.graph '" + std::string(name) + "': " + std::to_string(ranks) + " ranks have " +
                      std::to_string(count) + " edges, and at most " + std::to_string(most_edges) +
                      " are built; run on fewer ranks, or choose a graph with fewer neighbours a rank (ring, torus, "
                      "exponential)");
}

std::vector<std::vector<int>> components(const Graph& graph) {
  std::vector<int> component_of(boost::num_vertices(graph));
  const int count = boost::connected_components(graph, component_of.data());
  std::vector<std::vector<int>> components(static_cast<std::size_t>(count));
  for (std::size_t v = 0; v < component_of.size(); ++v)
    components[static_cast<std::size_t>(component_of[v])].push_back(static_cast<int>(v));
  return components;
}

bool is_connected(const Graph& graph) { return components(graph).size() == 1; }

void require_connected(const Graph& graph, const std::string& what) {
  const auto parts = components(graph);
  if (parts.size() == 1) return;
  std::string names;
  for (std::size_t n = 0; n < std::min<std::size_t>(parts.size(), 8); ++n)
    names += (n == 0 ? "" : " ") + listed(parts[n]);
  throw ConfigError(what + ": not connected: " + std::to_string(parts.size()) + " components " + names +
                    (parts.size() > 8 ? " …" : "") + "; add edges between them, or replicas can never agree");
}

Graph both_ways(const Targets& targets) {
  Graph graph = isolated_vertices(static_cast<int>(targets.size()));
  for (std::size_t i = 0; i < targets.size(); ++i)
    for (const int j : targets[i]) boost::add_edge(i, static_cast<std::size_t>(j), graph);
  return graph;
}

void require_strongly_connected(const Targets& targets, const std::string& what) {
  Targets sources(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i)
    for (const int j : targets[i]) sources[static_cast<std::size_t>(j)].push_back(static_cast<int>(i));
  const int unreached = out_of_reach(targets), mute = out_of_reach(sources);
  if (unreached < 0 && mute < 0) return;
  const std::string way = unreached >= 0 ? "no way from rank 0 to rank " + std::to_string(unreached)
                                         : "no way from rank " + std::to_string(mute) + " to rank 0";
  throw ConfigError(what + ": not strongly connected: " + way + "; add edges, or replicas can never agree");
}

std::optional<Rectangle> rectangle(int ranks, int rows, int shortest) {
  const auto fits = [&](int r) { return ranks % r == 0 && r >= shortest && ranks / r >= shortest; };
  if (rows > 0) return fits(rows) ? std::optional(Rectangle{rows, ranks / rows}) : std::nullopt;
  std::optional<Rectangle> best;
  for (int r = 1; r <= ranks / r; ++r)
    if (fits(r)) best = Rectangle{r, ranks / r};
  return best;
}

Graph lattice(std::string_view name, int ranks, int rows, int shortest, bool wrap) {
  Graph graph = isolated_vertices(ranks);
  if (ranks == 1) return graph;
  const auto sides = rectangle(ranks, rows, shortest);
  if (!sides)
    throw ConfigError("topology.graph '" + std::string(name) + "': " + std::to_string(ranks) +
                      " ranks do not make a rectangle with " + (rows > 0 ? std::to_string(rows) + " rows and " : "") +
                      "both sides >= " + std::to_string(shortest) + "; run on " + nearest_sizes(ranks, rows, shortest) +
                      " ranks" + (rows > 0 ? ", change topology.graph.rows" : "") + " or choose another graph");
  using Lattice = boost::grid_graph<2>;
  // The first dimension varies fastest: vertex = row · columns + column.
  const Lattice grid({static_cast<std::size_t>(sides->columns), static_cast<std::size_t>(sides->rows)}, wrap);
  for (auto [edge, end] = edges(grid); edge != end; ++edge)
    boost::add_edge(get(boost::vertex_index, grid, source(*edge, grid)),
                    get(boost::vertex_index, grid, target(*edge, grid)), graph);
  return graph;
}

void fill_diagonal(MixingMatrix& matrix) {
  for (int i = 0; i < matrix.size(); ++i) {
    double others = 0.0;
    for (const auto& [j, weight] : matrix.row(i))
      if (j != i) others += weight;
    matrix(i, i) = 1.0 - others;
  }
}

}  // namespace hearsay

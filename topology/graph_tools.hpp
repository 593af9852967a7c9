#pragma once
// What the graph families and weight rules share.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.hpp"

namespace hearsay {

int vertex_count(const Graph& graph);
int degree(const Graph& graph, int vertex);

/// P vertices, no edges. Throws ConfigError if P < 1.
Graph isolated_vertices(int ranks);

/// Throws ConfigError, before anything is built, where a graph of a family has too many edges to be held.
void require_few_edges(std::string_view name, int ranks, double edges);

/// The vertices of every connected component, ascending; one component for a connected graph.
std::vector<std::vector<int>> components(const Graph& graph);
bool is_connected(const Graph& graph);
/// Throws ConfigError naming the components unless the graph is connected. `what` opens the message.
void require_connected(const Graph& graph, const std::string& what);

/// Every arc as an edge. Throws ConfigError if there is no vertex.
Graph both_ways(const Targets& targets);
/// Throws ConfigError naming a rank unless every rank is reached from every other. `what` opens the message.
void require_strongly_connected(const Targets& targets, const std::string& what);

/// rows × columns = ranks.
struct Rectangle {
  int rows;
  int columns;
};
/// The rectangle with that many rows (0: the most square one) and both sides ≥ `shortest`; nothing if there is none.
std::optional<Rectangle> rectangle(int ranks, int rows, int shortest);
/// The vertices of a rectangle, row by row, joined to the right and downwards; with `wrap` around the ends as well.
/// P = 1 is one vertex. Throws ConfigError naming the nearest sizes if there is no such rectangle.
Graph lattice(std::string_view name, int ranks, int rows, int shortest, bool wrap);

/// One line `i j` or `i j w` of an edge-list file.
struct EdgeLine {
  int i;
  int j;
  std::optional<double> weight;  ///< on every line of a file or on none
  int line;                      ///< from 1
};
/// Reads an edge-list file: whitespace between the columns, `#` starts a comment, empty lines are skipped. `i i` is
/// allowed with a weight only. Throws DataError (file:line) if the file cannot be read, a line is malformed, or an edge
/// comes twice, of undirected ones in either direction; ConfigError if a vertex is ≥ `ranks` (file:line), or none is 0.
std::vector<EdgeLine> read_edge_list(const std::filesystem::path& file, int ranks, bool directed = false);

/// Puts 1 − Σ_j w_ij on the diagonal, so that every row sums to 1.
void fill_diagonal(MixingMatrix& matrix);

}  // namespace hearsay

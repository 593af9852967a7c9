// A graph of one's own, from a text file.
//
//   one edge `i j` a line, vertices 0 … P−1, either direction; `#` starts a comment
//
// A third column, on every line or on none, is the weight w_ij, and `i i w` the self-weight: this graph passes over
// both, the weight rule `edge_list` reads them from the same file. Source: the file.
// Deviates from the paper in: nothing.
// Cost: the file's edges.
#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class EdgeList final : public GraphFamily {
 public:
  explicit EdgeList(std::filesystem::path file) : file_(std::move(file)) {}

  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    if (ranks == 1) return graph;
    if (file_.empty()) throw ConfigError("topology.graph.path: the graph 'edge_list' needs a file of `i j` lines");
    for (const EdgeLine& edge : read_edge_list(file_, ranks))
      if (edge.i != edge.j) boost::add_edge(edge.i, edge.j, graph);
    require_connected(graph, file_.string());
    return graph;
  }

 private:
  std::filesystem::path file_;
};

std::unique_ptr<GraphFamily> make(Config& config) {
  return std::make_unique<EdgeList>(config.path("path", "", "text file, one edge `i j` a line"));
}

}  // namespace

GraphEntry edge_list_graph() {
  return {.name = "edge_list",
          .summary = "a graph of your own from a text file",
          .equation = "one edge `i j` a line",
          .cost = "as the file has it",
          .citation = "the file",
          .make = make};
}

}  // namespace hearsay

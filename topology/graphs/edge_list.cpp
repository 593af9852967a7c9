// A graph of one's own, from a text file.
//
//   one edge `i j` a line, vertices 0 … P−1, either direction; `#` starts a comment
//   with `directed: true` a line is the arc i → j
//
// A third column, on every line or on none, is the weight w_ij, and `i i w` the self-weight: this graph passes over
// both, the weight rule `edge_list` reads them from the same file. Source: the file.
// Deviates from the paper in: nothing.
// Cost: the file's edges.
#include <algorithm>

#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class EdgeList final : public GraphFamily {
 public:
  EdgeList(std::filesystem::path file, bool directed) : file_(std::move(file)), directed_(directed) {}

  Graph build(int ranks) const override {
    if (directed_) return both_ways(targets(ranks));
    Graph graph = isolated_vertices(ranks);
    for (const EdgeLine& edge : read(ranks))
      if (edge.i != edge.j) boost::add_edge(edge.i, edge.j, graph);
    require_connected(graph, file_.string());
    return graph;
  }
  bool directed() const override { return directed_; }
  Targets targets(int ranks) const override {
    Targets targets(boost::num_vertices(isolated_vertices(ranks)));
    for (const EdgeLine& edge : read(ranks))
      if (edge.i != edge.j) targets[static_cast<std::size_t>(edge.i)].push_back(edge.j);
    for (auto& of_rank : targets) std::ranges::sort(of_rank);
    require_strongly_connected(targets, file_.string());
    return targets;
  }

 private:
  std::vector<EdgeLine> read(int ranks) const {
    if (ranks == 1) return {};
    if (file_.empty()) throw ConfigError("topology.graph.path: the graph 'edge_list' needs a file of `i j` lines");
    return read_edge_list(file_, ranks, directed_);
  }

  std::filesystem::path file_;
  bool directed_;
};

std::unique_ptr<GraphFamily> make_edge_list(Config& config) {
  std::filesystem::path file = config.path("path", "", "text file, one edge `i j` a line");
  return std::make_unique<EdgeList>(std::move(file),
                                    config.flag("directed", false, "a line is the arc i -> j; for `push_sum` only"));
}

}  // namespace

GraphEntry edge_list_graph() {
  return {.name = "edge_list",
          .summary = "a graph of your own from a text file",
          .equation = "one edge `i j` a line",
          .cost = "as the file has it",
          .citation = "the file",
          .make = make_edge_list};
}

}  // namespace hearsay

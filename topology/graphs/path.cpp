// Path: a ring without its last edge.
//
//   edges {i, i+1}, 0 ≤ i < P−1
//
// Source: nedic2018network (path graph).
// Deviates from the paper in: nothing.
// Cost: at most 2 neighbours a rank, P−1 edges. Gap with metropolis weights: (2/3)(1 − cos π/P) ≈ 3.29/P².
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Path final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    for (int i = 0; i + 1 < ranks; ++i) boost::add_edge(i, i + 1, graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_path(Config&) { return std::make_unique<Path>(); }

}  // namespace

GraphEntry path_graph() {
  return {.name = "path",
          .summary = "a ring without its last edge",
          .equation = "edges {i, i+1}, i < P-1",
          .cost = "1 or 2 neighbours a rank, P-1 edges; gap with metropolis weights: (2/3)(1 - cos π/P), about 3.29/P²",
          .citation = "nedic2018network (path graph)",
          .make = make_path};
}

}  // namespace hearsay

// Ring: rank i talks to its two neighbours on a circle.
//
//   edges {i, i+1 mod P}; P = 2 is one edge
//
// Source: nedic2018network (cycle graph), the graph of the EventGraD paper (ghosh2021eventgrad).
// Deviates from the paper in: nothing.
// Cost: 2 neighbours a rank (1 for P = 2), P edges. Gap with weights 1/3: (2/3)(1 − cos 2π/P) ≈ 13.16/P².
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Ring final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    if (ranks == 1) return graph;
    for (int i = 0; i < ranks; ++i) boost::add_edge(i, (i + 1) % ranks, graph);  // a set of edges: {0, 1} stays one
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_ring(Config&) { return std::make_unique<Ring>(); }

}  // namespace

GraphEntry ring_graph() {
  return {.name = "ring",
          .summary = "a circle: every rank has two neighbours",
          .equation = "edges {i, i+1 mod P}",
          .cost = "2 neighbours a rank, P edges; gap with weights 1/3: (2/3)(1 - cos 2π/P), about 13.16/P²",
          .citation = "nedic2018network (cycle graph); ghosh2021eventgrad (ring of PEs)",
          .make = make_ring};
}

}  // namespace hearsay

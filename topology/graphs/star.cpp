// Star: everyone talks to rank 0 only.
//
//   edges {0, i}, 1 ≤ i < P
//
// Source: nedic2018network (star graph).
// Deviates from the paper in: nothing.
// Cost: P−1 neighbours for rank 0, which is the bottleneck, 1 for everyone else; P−1 edges. Gap with metropolis: 1/P.
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Star final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    for (int i = 1; i < ranks; ++i) boost::add_edge(0, i, graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_star(Config&) { return std::make_unique<Star>(); }

}  // namespace

GraphEntry star_graph() {
  return {.name = "star",
          .summary = "everyone talks to rank 0 only",
          .equation = "edges {0, i}, i > 0",
          .cost = "P-1 neighbours for rank 0, 1 for the others, P-1 edges; gap with metropolis weights: 1/P",
          .citation = "nedic2018network (star graph)",
          .make = make_star};
}

}  // namespace hearsay

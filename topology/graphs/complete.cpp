// Complete graph: everyone talks to everyone.
//
//   edges {i, j}, i < j
//
// Source: nedic2018network (complete graph).
// Deviates from the paper in: nothing.
// Cost: P−1 neighbours a rank, P(P−1)/2 edges. Gap 1: with weights 1/P one mixing is the exact average.
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Complete final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    require_few_edges("complete", ranks, 0.5 * ranks * (ranks - 1.0));
    Graph graph = isolated_vertices(ranks);
    for (int i = 0; i < ranks; ++i)
      for (int j = i + 1; j < ranks; ++j) boost::add_edge(i, j, graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_complete(Config&) { return std::make_unique<Complete>(); }

}  // namespace

GraphEntry complete_graph() {
  return {.name = "complete",
          .summary = "everyone talks to everyone",
          .equation = "edges {i, j}, i < j",
          .cost = "P-1 neighbours a rank, P(P-1)/2 edges; gap 1: one mixing is the exact average",
          .citation = "nedic2018network (complete graph)",
          .make = make_complete};
}

}  // namespace hearsay

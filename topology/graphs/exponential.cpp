// Static exponential graph: neighbours at distances 1, 2, 4, … on a circle.
//
//   edges {i, (i + 2^t) mod P}, 2^t < P
//
// Source: ying2021exponential (static exponential graph).
// Deviates from the paper in: there an edge is directed, i → i + 2^t; here it counts both ways, so that W is symmetric.
// A rank thus has up to twice the neighbours.
// Cost: at most 2⌈log2 P⌉ neighbours a rank, 2τ − 1 for P = 2^τ (i + P/2 is i − P/2); gap O(1/log P).
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Exponential final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    for (std::int64_t i = 0; i < ranks; ++i)
      for (std::int64_t distance = 1; distance < ranks; distance *= 2)
        boost::add_edge(static_cast<std::size_t>(i), static_cast<std::size_t>((i + distance) % ranks), graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_exponential(Config&) { return std::make_unique<Exponential>(); }

}  // namespace

GraphEntry exponential_graph() {
  return {.name = "exponential",
          .summary = "neighbours at distances 1, 2, 4, … on a circle, both ways",
          .equation = "edges {i, (i + 2^t) mod P}, 2^t < P",
          .cost = "about 2 log2 P neighbours a rank; gap O(1/log P)",
          .citation = "ying2021exponential (static exponential graph)",
          .make = make_exponential};
}

}  // namespace hearsay

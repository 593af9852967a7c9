// Hypercube: ranks whose binary numbers differ in one digit are neighbours.
//
//   P = 2^τ; edges {i, i xor 2^t}, 0 ≤ t < τ
//
// Source: ying2021exponential, boyd2004fastest (hypercube).
// Deviates from the paper in: nothing.
// Cost: τ = log2 P neighbours a rank, τP/2 edges. Gap with weights 1/(τ+1): 2/(τ+1), the best that any weights reach.
#include <bit>

#include "base/error.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class Hypercube final : public GraphFamily {
 public:
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    const auto size = static_cast<unsigned>(ranks);
    if (!std::has_single_bit(size))
      throw ConfigError("topology.graph 'hypercube': " + std::to_string(ranks) + " is not a power of two; run on " +
                        std::to_string(std::bit_floor(size)) + " or " + std::to_string(std::bit_ceil(size)) +
                        " ranks or choose another graph");
    for (unsigned i = 0; i < size; ++i)
      for (unsigned bit = 1; bit < size; bit *= 2) boost::add_edge(i, i ^ bit, graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_hypercube(Config&) { return std::make_unique<Hypercube>(); }

}  // namespace

GraphEntry hypercube_graph() {
  return {.name = "hypercube",
          .summary = "ranks whose binary numbers differ in one digit; P = 2^τ",
          .equation = "edges {i, i xor 2^t}, t < τ = log2 P",
          .cost = "τ neighbours a rank, τP/2 edges; gap with weights 1/(τ+1): 2/(τ+1)",
          .citation = "ying2021exponential; boyd2004fastest",
          .make = make_hypercube};
}

}  // namespace hearsay

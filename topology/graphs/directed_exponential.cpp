// Directed exponential graph: rank i sends to the ranks 1, 2, 4, … further on a circle, at every iteration.
//
//   arcs i → (i + 2^t) mod P, 2^t < P
//
// Source: ying2021exponential (static exponential graph).
// Deviates from the paper in: nothing; `exponential` is the same with every arc counted both ways.
// Cost: ⌈log2 P⌉ packets a rank and iteration. With uniform shares: gap 2/(1 + ⌈log2 P⌉) for an even P.
#include <algorithm>

#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class DirectedExponential final : public GraphFamily {
 public:
  bool directed() const override { return true; }
  Targets targets(int ranks) const override {
    Targets targets(boost::num_vertices(isolated_vertices(ranks)));
    for (std::int64_t i = 0; i < ranks; ++i) {
      auto& of_rank = targets[static_cast<std::size_t>(i)];
      for (std::int64_t distance = 1; distance < ranks; distance *= 2)
        of_rank.push_back(static_cast<int>((i + distance) % ranks));
      std::ranges::sort(of_rank);
    }
    return targets;
  }
  Graph build(int ranks) const override { return both_ways(targets(ranks)); }
};

std::unique_ptr<GraphFamily> make_directed_exponential(Config&) { return std::make_unique<DirectedExponential>(); }

}  // namespace

GraphEntry directed_exponential_graph() {
  return {.name = "directed_exponential",
          .summary = "every rank sends 1, 2, 4, … further on a circle; `push_sum` only",
          .equation = "arcs i -> (i + 2^t) mod P, 2^t < P",
          .cost = "ceil(log2 P) packets a rank and iteration; gap 2/(1 + ceil(log2 P)) for an even P",
          .citation = "ying2021exponential (static exponential graph)",
          .make = make_directed_exponential};
}

}  // namespace hearsay

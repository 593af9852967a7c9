// Directed ring: rank i sends to the next rank on a circle and hears of the one before.
//
//   arcs i → (i + 1) mod P
//
// Source: assran2019sgp, section 3 (directed and strongly connected).
// Deviates from the paper in: nothing.
// Cost: one packet a rank and iteration. With uniform shares, 1/2: gap 1 − cos π/P, about 4.93/P².
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class DirectedRing final : public GraphFamily {
 public:
  bool directed() const override { return true; }
  Targets targets(int ranks) const override {
    Targets targets(boost::num_vertices(isolated_vertices(ranks)));
    if (ranks == 1) return targets;
    for (int i = 0; i < ranks; ++i) targets[static_cast<std::size_t>(i)] = {(i + 1) % ranks};
    return targets;
  }
  Graph build(int ranks) const override { return both_ways(targets(ranks)); }
};

std::unique_ptr<GraphFamily> make_directed_ring(Config&) { return std::make_unique<DirectedRing>(); }

}  // namespace

GraphEntry directed_ring_graph() {
  return {.name = "directed_ring",
          .summary = "a circle, one way: every rank sends to the next; `push_sum` only",
          .equation = "arcs i -> (i + 1) mod P",
          .cost = "one packet a rank and iteration; gap with shares 1/2: 1 - cos π/P, about 4.93/P²",
          .citation = "assran2019sgp, section 3",
          .make = make_directed_ring};
}

}  // namespace hearsay

// One-peer exponential graph: at iteration k a rank sends to one other, 1, 2, 4, … further on a circle in turn.
//
//   phase t = k mod ⌈log2 P⌉: i → (i + 2^t) mod P;   x_i ← ½ (x_i + x_{i − 2^t})
//
// Source: ying2021exponential (one-peer exponential graph). Used with Adam by wang2025promise:
// configs/text/decent-dp.yaml.
// Deviates from the paper in: nothing. With P = 2^τ the τ phases of a period average exactly; else they only contract.
// Cost: one packet a rank and iteration, whatever P is; window and copies for the neighbours of all phases, as
// `exponential`.
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

class OnePeerExponential final : public GraphFamily {
 public:
  std::vector<GraphPhase> phases(int ranks) const override {
    std::vector<GraphPhase> all;
    for (std::int64_t distance = 1; distance < ranks; distance *= 2) {
      GraphPhase& phase = all.emplace_back();
      for (std::int64_t i = 0; i < ranks; ++i) phase.push_back(static_cast<int>((i + distance) % ranks));
    }
    return all;
  }
  Graph build(int ranks) const override {
    Graph graph = isolated_vertices(ranks);
    for (const GraphPhase& phase : phases(ranks))
      for (std::size_t i = 0; i < phase.size(); ++i) boost::add_edge(i, static_cast<std::size_t>(phase[i]), graph);
    return graph;
  }
};

std::unique_ptr<GraphFamily> make_one_peer_exponential(Config&) { return std::make_unique<OnePeerExponential>(); }

}  // namespace

GraphEntry one_peer_exponential_graph() {
  return {
      .name = "one_peer_exponential",
      .summary = "one peer an iteration, in turn 1, 2, 4, … further on a circle; in lockstep with fresh copies only",
      .equation = "at iteration k: i -> (i + 2^t) mod P, t = k mod ceil(log2 P); x_i <- (x_i + x_{i - 2^t}) / 2",
      .cost = "one packet a rank and iteration; the mean after log2 P iterations, exactly if P is a power of two",
      .citation = "ying2021exponential (one-peer exponential graph)",
      .make = make_one_peer_exponential};
}

}  // namespace hearsay

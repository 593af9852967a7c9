// Two-dimensional torus: a grid whose rows and columns are rings.
//
//   rank = row · columns + column; edges to (row ± 1 mod rows, column) and (row, column ± 1 mod columns)
//
// Source: nedic2018network (2-D grid), with its ends joined.
// Deviates from the paper in: nothing. Both sides are at least 3: with a side of 2 two of the four edges would
// coincide.
// Cost: 4 neighbours a rank, 2P edges. Gap with weights 1/5 on m × m: (2/5)(1 − cos 2π/m) ≈ 7.90/P.
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

constexpr int shortest_torus_side = 3;

class Torus final : public GraphFamily {
 public:
  explicit Torus(int rows) : rows_(rows) {}
  Graph build(int ranks) const override { return lattice("torus", ranks, rows_, shortest_torus_side, true); }

 private:
  int rows_;  // 0: the most square rectangle
};

std::unique_ptr<GraphFamily> make_torus(Config& config) {
  const auto rows = static_cast<int>(
      config.integer("rows", 0, Range::between(0, 1 << 20), "ranks a column; 0: the most square rectangle"));
  config.require(rows == 0 || rows >= shortest_torus_side, "rows", "must be 0 or >= 3, got " + std::to_string(rows));
  return std::make_unique<Torus>(rows);
}

}  // namespace

GraphEntry torus_graph() {
  return {.name = "torus",
          .summary = "a grid with its ends joined: every rank has four neighbours",
          .equation =
              "rank = row · columns + column; edges to (row ± 1 mod rows, column) and (row, column ± 1 mod columns)",
          .cost = "4 neighbours a rank, 2P edges; gap with weights 1/5 on m × m: (2/5)(1 - cos 2π/m), about 7.90/P",
          .citation = "nedic2018network (2-D grid, wrapped)",
          .make = make_torus};
}

}  // namespace hearsay

// Two-dimensional grid: a rectangle of ranks, each joined to the ranks above, below, left and right.
//
//   rank = row · columns + column; edges to (row + 1, column) and (row, column + 1) where they exist
//
// Source: nedic2018network (2-D grid).
// Deviates from the paper in: nothing. Both sides are at least 2: with a side of 1 it is the graph `path`.
// Cost: 2 to 4 neighbours a rank, 2P − rows − columns edges. Gap with metropolis weights: O(1/P) for a square.
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

constexpr int shortest_grid_side = 2;

class Grid final : public GraphFamily {
 public:
  explicit Grid(int rows) : rows_(rows) {}
  Graph build(int ranks) const override { return lattice("grid", ranks, rows_, shortest_grid_side, false); }

 private:
  int rows_;  // 0: the most square rectangle
};

std::unique_ptr<GraphFamily> make_grid(Config& config) {
  const auto rows = static_cast<int>(
      config.integer("rows", 0, Range::between(0, 1 << 20), "ranks a column; 0: the most square rectangle"));
  config.require(rows == 0 || rows >= shortest_grid_side, "rows",
                 "must be 0 or >= 2, got " + std::to_string(rows) + "; one row is the graph 'path'");
  return std::make_unique<Grid>(rows);
}

}  // namespace

GraphEntry grid_graph() {
  return {.name = "grid",
          .summary = "a rectangle: neighbours above, below, left and right",
          .equation = "rank = row · columns + column; edges to (row + 1, column) and (row, column + 1)",
          .cost = "2 to 4 neighbours a rank, 2P - rows - columns edges; gap O(1/P) for a square",
          .citation = "nedic2018network (2-D grid)",
          .make = make_grid};
}

}  // namespace hearsay

#pragma once
// What was measured of the neighbour path's accuracy against its bytes, and which configuration follows from it.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// How ranks' shares of the data differ: not at all; each class dealt by a Dirichlet distribution; sorted by label.
enum class Shares { alike, dirichlet, sorted };

/// Per cent.
struct Reached {
  double accuracy = 0.0;  ///< of the averaged model
  double worst = 0.0;     ///< of the worst rank's
  double bytes = 0.0;     ///< of D-PSGD's
};

/// What methods with drift correction reached on one kind of shares and one graph.
struct MeasuredCell {
  Shares shares;
  std::string graph;
  int ranks;
  double gap;  ///< spectral gap of the graph with uniform weights
  Reached all_reduce, plain_dpsgd;
  struct Method {
    std::string name;
    Reached reached;
  };
  std::vector<Method> corrected;
};
/// Of research/results/tables/skew.md, with three seeds each.
std::vector<MeasuredCell> measured_cells();
/// The one of these shares whose spectral gap is nearest, as a ratio.
const MeasuredCell& nearest_cell(std::span<const MeasuredCell> cells, Shares shares, double gap);

/// What else is as accurate, in points of accuracy: seeds differ by as much.
inline constexpr double as_accurate = 0.1;
/// A budget of bytes is met to within this factor: seeds differ by as much.
inline constexpr double within_budget = 1.02;
/// The cheapest method that is as accurate as any that needs at most this fraction of D-PSGD's bytes; the cheapest of
/// all if none needs so little.
const MeasuredCell::Method& best_method(const MeasuredCell& cell, double bytes_fraction);

/// KEY=VALUE, to be set on top of a configuration: a method of the cells, corrected.
std::vector<std::string> settings_of(std::string_view method);

}  // namespace hearsay

#pragma once
// Plans of the exchanges that send to neighbours: what follows from their link is said once, here.
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/neighbour/augmented.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/linear_iteration.hpp"
#include "runtime/exchange/neighbour/link/options.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// What a neighbour exchange says of itself. n is the number of values of the replica.
struct NeighbourAlgorithm {
  LinkOptions link{};
  std::shared_ptr<const Sparsifier> sparsifier{};  ///< null: segments travel whole
  Beside beside{};                                 ///< what travels beside x; empty: nothing
  CorrectionPlan correction{};
  std::size_t links = 1;         ///< of n values each, with the same options: a packet each in an iteration
  std::size_t blocks = 0;        ///< of n floats that it keeps, beside the link's and the correction's
  double words = 0.0;            ///< floats that it reads or writes in an iteration for each of the n, as well
  bool by_events = false;        ///< only a part of the segments travels: CostAssumptions::event_fraction
  bool keeps_copies = true;      ///< of its neighbours; else it keeps the packets that are under way
  bool on_devices = false;       ///< its passes are the device's
  bool survives_deaths = false;  ///< ExchangePlan::survives_deaths
  ExchangeLaws laws{};           ///< `along_graph` is true anyway
  std::function<std::vector<std::string>(const Topology&)> warnings{};
  /// Its iteration on a quadratic; empty, or nothing, where none is known.
  std::function<std::optional<LinearIteration>(const Topology&)> linear{};
  std::function<std::unique_ptr<Exchange>(const ExchangeContext&)> build{};
};
std::unique_ptr<ExchangePlan> neighbour_plan(NeighbourAlgorithm algorithm);

}  // namespace hearsay

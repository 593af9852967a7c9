#pragma once
// The predictions of `hearsay plan`, one line an algorithm.
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// What the predictions are for.
struct PlanSubject {
  const Layout& layout;
  const Topology& topology;  ///< of the neighbour algorithms
  double compute_s = 0.0;    ///< forward and backward pass
  double density = 0.01;     ///< of the sparse algorithms
  CostAssumptions assumptions{};
};

struct PlanRow {
  std::string algorithm;
  bool neighbours = false;  ///< along the graph; else everybody gets the same gradient
  ExchangeCost cost{};
  double communication_s = 0.0, local_s = 0.0, iteration_s = 0.0;
};

/// Every entry of exchanges() that has a formula, in its variants, the fastest iteration first.
std::vector<PlanRow> plan_rows(const PlanSubject& subject, const Network& network);
/// The table, at most 100 columns, and which algorithm is the fastest of its kind.
std::string plan_text(const std::vector<PlanRow>& rows, const PlanSubject& subject);

}  // namespace hearsay

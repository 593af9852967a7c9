// Layer-wise top-k, S segments, of which R, of n_R values, are sent whole around a ring: S − R all-gathers, whose
// messages hold b bytes together, and a dense ring over S counts:
//   (S − R) L α + (P − 1) b/4 β + 2 (P − 1) (1 + R) α + 2 (P − 1)/P (S + n_R) β
// li2022layerwise, Algorithm 2. Later iterations: the first one is dense.
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

ExchangeCost layerwise_cost(const SparseShape& shape, std::size_t segments, const RingedSegments& rings,
                            const CostAssumptions& assumptions) {
  CommunicationCost gathers = gather_cost(shape.ranks, shape.message_bytes),
                    whole = ring_cost(shape.ranks, rings.values);
  gathers.messages *= static_cast<double>(segments - rings.segments);
  whole.messages *= static_cast<double>(rings.segments);
  const CommunicationCost messages = gathers + whole + ring_cost(shape.ranks, segments);
  ExchangeCost cost = flat_cost(messages, messages.words * bytes_per_word, Pattern::shifting, assumptions);
  const auto n = static_cast<double>(shape.values);
  const auto k = static_cast<double>(shape.k);
  // Twice: for what travels, and for the next budgets.
  cost.local =
      2.0 * selection_work(n, k, shape.selector_reads) +
      LocalWork{.moved_bytes = 2.0 * bytes_per_word * n, .merged_entries = rounds(shape.ranks) * shape.ranks * k};
  return cost;
}

}  // namespace hearsay

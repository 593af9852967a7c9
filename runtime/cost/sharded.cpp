// Sharded parameter servers, pushes of b bytes to each server, pulls of q bytes from each:
//   (P − 1) (α + b/4 β) + L α + (P − 1) q/4 β
// aji2017sparse; the pulls as an all-gather, bruck1997efficient. Pushes are taken to be equally long.
#include "runtime/cost/cost.hpp"
#include "runtime/cost/rounds.hpp"

namespace hearsay {

ExchangeCost sharded_cost(const SparseShape& shape, std::size_t pull_bytes, const CostAssumptions& assumptions) {
  const double others = shape.ranks - 1.0;
  const CommunicationCost pushes{.messages = others,
                                 .words = others * static_cast<double>(shape.message_bytes) / bytes_per_word};
  const CommunicationCost messages = pushes + gather_cost(shape.ranks, pull_bytes);
  ExchangeCost cost = flat_cost(messages, messages.words * bytes_per_word, assumptions);
  const double n = static_cast<double>(shape.values), p = shape.ranks;
  cost.local = {.moved_bytes = bytes_per_word * (4.0 * n + 6.0 * n / p),  // g, x and its copy; master, copy, change
                .selected_values = n + n / p,
                .merged_entries = rounds(shape.ranks) * p * static_cast<double>(shape.k)};
  return cost;
}

}  // namespace hearsay

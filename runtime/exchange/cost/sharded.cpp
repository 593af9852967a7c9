// Sharded parameter servers, pushes of b bytes to each server, pulls of q bytes from each:
//   (P − 1) (α + b/4 β) + L α + (P − 1) q/4 β
// aji2017sparse; the pulls as an all-gather, bruck1997efficient. Pushes are taken to be equally long.
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

ExchangeCost sharded_cost(const SparseShape& shape, std::size_t pull_bytes, const CostAssumptions& assumptions) {
  const double others = shape.ranks - 1.0;
  const CommunicationCost pushes{.messages = others,
                                 .words = others * static_cast<double>(shape.message_bytes) / bytes_per_word};
  const CommunicationCost messages = pushes + gather_cost(shape.ranks, pull_bytes);
  ExchangeCost cost = flat_cost(messages, messages.words * bytes_per_word, Pattern::shifting, assumptions);
  const double n = static_cast<double>(shape.values), p = shape.ranks;
  const auto k = static_cast<double>(shape.k);
  // What is only written is read first by a cache: three words a value that is copied, two a value that is overwritten.
  constexpr double words_of_block = 2.0 + 3.0;        // g; x ← copy
  constexpr double words_of_shard = 3.0 + 3.0 + 4.0;  // x ← master, master ← x; change ← master − copy
  cost.local = selection_work(n + n / p, k + k / p, shape.selector_reads) +
               LocalWork{.moved_bytes = bytes_per_word * (words_of_block * n + words_of_shard * n / p),
                         .merged_entries = rounds(shape.ranks) * p * k};
  return cost;
}

}  // namespace hearsay

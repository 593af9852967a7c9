// Dense all-reduce in a ring: 2 (P − 1) α + 2 (P − 1)/P n β for each bucket's messages and all values together.
// patarasuk2009bandwidth.
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

CommunicationCost ring_cost(int ranks, std::size_t values) {
  const double p = ranks;
  return {.messages = 2.0 * (p - 1.0), .words = 2.0 * (p - 1.0) / p * static_cast<double>(values)};
}

ExchangeCost allreduce_cost(int ranks, std::size_t values, std::size_t buckets, const CostAssumptions& assumptions) {
  CommunicationCost messages = ring_cost(ranks, values);
  messages.messages *= static_cast<double>(buckets);
  ExchangeCost cost = flat_cost(messages, messages.words * bytes_per_word, Pattern::shifting, assumptions);
  // The sums, half of what arrives, read two values and write one; the mean reads and writes all.
  cost.local.moved_bytes = bytes_per_word * (1.5 * messages.words + 2.0 * static_cast<double>(values));
  return cost;
}

}  // namespace hearsay

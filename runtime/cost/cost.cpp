#include "runtime/cost/cost.hpp"

#include <algorithm>

namespace hearsay {

double communication_s(const ExchangeCost& cost, const Network& network) {
  return cost.inside.seconds(network.inside) + cost.between.seconds(network.between);
}

double iteration_s(const ExchangeCost& cost, const Network& network, double compute_s) {
  const double local = cost.local.seconds(network);
  if (!cost.waits) return compute_s + local;
  const double messages = communication_s(cost, network);
  return local + (cost.overlaps ? std::max(compute_s, messages) : compute_s + messages);
}

ExchangeCost flat_cost(const CommunicationCost& messages, double sent_bytes, const CostAssumptions& assumptions) {
  ExchangeCost cost{.sent_bytes = sent_bytes};
  (assumptions.hosts > 1 ? cost.between : cost.inside) = messages;
  return cost;
}

}  // namespace hearsay

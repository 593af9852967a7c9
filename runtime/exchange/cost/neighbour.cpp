// Packets of b bytes to d neighbours: d (4 α + b/4 β). The four: the packet, its flush there and back, the head.
// lian2017dpsgd: a rank's messages grow with its degree, not with P. Every neighbour receives as much as it sends, at
// the same time, over a link that does both.
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

ExchangeCost neighbour_cost(const NeighbourShape& shape, const CostAssumptions& assumptions) {
  constexpr double latencies = 4.0;
  const double d = shape.degree;
  const CommunicationCost messages{.messages = latencies * d, .words = d * shape.packet_bytes / bytes_per_word};
  ExchangeCost cost = flat_cost(messages, shape.mean_degree * shape.packet_bytes, Pattern::crossing, assumptions);
  const double n = static_cast<double>(shape.values), b = shape.packet_bytes;
  cost.message_bytes = b;
  // A packet is written and its checksum read, and read again at each neighbour, where it becomes a copy; mixing reads
  // and writes x. What is only read: x, for the norms, and the copies that are mixed.
  const double copies = d + (shape.own_copy ? 1.0 : 0.0);
  cost.local = shape.selection + LocalWork{.moved_bytes = 3.0 * b + 3.0 * d * b + 2.0 * bytes_per_word * n,
                                           .read_bytes = (1.0 + copies) * bytes_per_word * n};
  cost.overlaps = true;
  return cost;
}

}  // namespace hearsay

#include "runtime/collectives/gathered_sum.hpp"

#include <utility>
#include <vector>

namespace hearsay {

SparseSum gathered_sum(const Group& group, const SparseVector& own, const SparseWire& wire) {
  SparseWire::Sent sent = wire.prepare(own);
  const auto messages = all_gather(group, std::move(sent.message));
  std::vector<SparseVector> contributions;
  for (const OwnedMessage& message : messages) contributions.push_back(wire.decode(message.bytes));
  return {.total = sum(std::span<const SparseVector>(contributions)),
          .returned = std::move(sent.rest),
          .included = std::move(sent.received)};
}

}  // namespace hearsay

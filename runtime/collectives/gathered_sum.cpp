#include "runtime/collectives/gathered_sum.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearsay {

namespace {

struct Gathered {
  std::vector<SparseVector> of_member{};
  SparseVector returned{}, included{};
};

Gathered gathered(const Group& group, const SparseVector& own, const SparseWire& wire) {
  SparseWire::Sent sent = wire.prepare(own);
  const auto messages = all_gather(group, std::move(sent.message));
  Gathered all{.returned = std::move(sent.rest), .included = std::move(sent.received)};
  for (const OwnedMessage& message : messages) all.of_member.push_back(wire.decode(message.bytes));
  return all;
}

}  // namespace

SparseSum gathered_sum(const Group& group, const SparseVector& own, const SparseWire& wire) {
  Gathered all = gathered(group, own, wire);
  return {.total = sum(std::span<const SparseVector>(all.of_member)),
          .returned = std::move(all.returned),
          .included = std::move(all.included)};
}

SparseSum gathered_mean_of_senders(const Group& group, const SparseVector& own, const SparseWire& wire) {
  Gathered all = gathered(group, own, wire);
  SparseSum found{.total = sum(std::span<const SparseVector>(all.of_member)),
                  .returned = std::move(all.returned),
                  .included = std::move(all.included)};
  for (SparseVector& of_member : all.of_member) std::ranges::fill(of_member.values, 1.0F);
  const SparseVector senders = sum(std::span<const SparseVector>(all.of_member));
  std::size_t at = 0;  // every position of the sum is among the senders'
  for (std::size_t i = 0; i < found.total.size(); ++i) {
    while (senders.indices[at] < found.total.indices[i]) ++at;
    found.total.values[i] /= senders.values[at];
  }
  return found;
}

}  // namespace hearsay

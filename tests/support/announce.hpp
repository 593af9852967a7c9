#pragma once
// What a loop does that hears of its gradients one by one.
#include "runtime/exchange/participant.hpp"

namespace hearsay::test {

/// Every gradient is ready, last layer first, where the exchange wants to hear of each.
inline void announce_gradients(Participant& member) {
  if (!member.exchange().capabilities().layer_wise) return;
  for (std::size_t s = member.replica().layout.count(); s-- > 0;) member.gradient_ready(static_cast<SegmentId>(s));
}

}  // namespace hearsay::test

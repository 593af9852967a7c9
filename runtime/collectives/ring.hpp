#pragma once
// Dense collectives around a ring: each member talks to its two neighbours only, in P − 1 steps.
#include <cstddef>
#include <span>

#include "runtime/replica/lane.hpp"
#include "runtime/replica/layout.hpp"
#include "runtime/transport/peers.hpp"

namespace hearsay {

/// Afterwards member i's own part of `values` is the sum of that part over all members, added in ring order; the rest
/// of `values` is partial sums. Cost: P − 1 messages, (P − 1)/P · 4n bytes.
void reduce_scatter(const Group& group, std::span<float> values);
/// Every member's own part goes to all: the inverse distribution of reduce_scatter. Cost: P − 1 messages,
/// (P − 1)/P · 4n bytes.
void all_gather_parts(const Group& group, std::span<float> values);
/// values ← Σ over members, the same bits on each. Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
/// clusters of workstations, JPDC 2009 (patarasuk2009bandwidth). Cost: 2(P − 1) messages, 2(P − 1)/P · 4n bytes.
void ring_all_reduce(const Group& group, std::span<float> values);
/// The same of values that live on a device, in the same order of additions, so with the same bits: what comes is
/// added there. `lane` has buffers for the longest part, n/P values. Returns when all of it is there. Cost: 4n bytes
/// leave the device, 2(P − 1)/P · 4n go to it.
void ring_all_reduce(const Group& group, std::span<float> values, Lane& lane);

}  // namespace hearsay

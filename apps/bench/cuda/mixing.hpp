#pragma once
// Mixing on the GPU, without CUDA's headers (algorithm and cost: runtime/gpu/kernels/mixing_algorithm.hpp). Pointers
// are device pointers; the calls return at once, work is done in the stream's order. Throw CommunicationError if a
// launch fails.
#include <cstdint>
#include <span>

#include "runtime/gpu/kernels/mixing_algorithm.hpp"
#include "runtime/gpu/machine/memory.hpp"

namespace hearsay::device {

/// x ← self_weight · x + Σ_j weight_j · copy_j, n floats each: the same bits as hearsay::mix_row.
void mix_row(StreamHandle stream, float self_weight, std::span<const WeightedCopy> edges, float* x, std::uint64_t n);
/// x ← x + weight · (theirs − ours), n floats each: the same bits as hearsay::add_difference.
void add_difference(StreamHandle stream, float weight, const float* theirs, const float* ours, float* x,
                    std::uint64_t n);

}  // namespace hearsay::device

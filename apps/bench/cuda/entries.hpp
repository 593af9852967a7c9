#pragma once
// Sparse entries on the GPU, without CUDA's headers (cost: runtime/gpu/kernels/entries_algorithm.hpp). Pointers are
// device pointers; calls return at once. Throw CommunicationError if a launch fails.
#include <cstdint>

#include "runtime/gpu/machine/memory.hpp"

namespace hearsay::device {

/// entries ← block[positions], `count` of them.
void gather(StreamHandle stream, const float* block, const std::uint32_t* positions, std::uint32_t count,
            float* entries);
/// block[positions] ← entries; positions unique.
void scatter(StreamHandle stream, const float* entries, const std::uint32_t* positions, std::uint32_t count,
             float* block);
/// block[positions] ← block[positions] + scale · entries; positions unique.
void scatter_add(StreamHandle stream, float scale, const float* entries, const std::uint32_t* positions,
                 std::uint32_t count, float* block);

}  // namespace hearsay::device

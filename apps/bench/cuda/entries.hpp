#pragma once
// Sparse entries and quantisers on the GPU, without CUDA's headers (costs: entries_algorithm.hpp, quantise_algorithm.hpp
// beside this). Pointers are device pointers; calls return at once. Throw CommunicationError if a launch fails.
#include <cstddef>
#include <cstdint>

#include "runtime/gpu/kernels/quantise_algorithm.hpp"
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

/// out ← quantised_bytes(kind, …) bytes, those of the quantiser of this name; `out` on a multiple of 4 bytes.
void quantise(StreamHandle stream, QuantiserKind kind, const float* values, const GroupsView& groups, std::byte* out);
/// values ← what `in` encodes; *first_bad ← the first value that is not finite (its level or itself), or all_valid.
/// Any bytes are safe.
void dequantise(StreamHandle stream, QuantiserKind kind, const std::byte* in, const GroupsView& groups, float* values,
                std::uint32_t* first_bad);

}  // namespace hearsay::device

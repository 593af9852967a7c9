#include "apps/bench/cuda/entries.hpp"

#include "runtime/gpu/kernels/entries_algorithm.hpp"
#include "runtime/gpu/machine/gpu.cuh"

namespace hearsay::device {

void gather(StreamHandle stream, const float* block, const std::uint32_t* positions, std::uint32_t count,
            float* entries) {
  Gpu gpu(stream);
  gather(gpu, block, positions, count, entries);
}

void scatter(StreamHandle stream, const float* entries, const std::uint32_t* positions, std::uint32_t count,
             float* block) {
  Gpu gpu(stream);
  scatter(gpu, entries, positions, count, block);
}

void scatter_add(StreamHandle stream, float scale, const float* entries, const std::uint32_t* positions,
                 std::uint32_t count, float* block) {
  Gpu gpu(stream);
  scatter_add(gpu, scale, entries, positions, count, block);
}

void quantise(StreamHandle stream, QuantiserKind kind, const float* values, const GroupsView& groups, std::byte* out) {
  Gpu gpu(stream);
  quantise(gpu, kind, values, groups, out);
}

void dequantise(StreamHandle stream, QuantiserKind kind, const std::byte* in, const GroupsView& groups, float* values,
                std::uint32_t* first_bad) {
  Gpu gpu(stream);
  dequantise(gpu, kind, in, groups, values, first_bad);
}

}  // namespace hearsay::device

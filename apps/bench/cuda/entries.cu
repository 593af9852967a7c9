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

}  // namespace hearsay::device

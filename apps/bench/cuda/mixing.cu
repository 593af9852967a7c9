#include "apps/bench/cuda/mixing.hpp"

#include "runtime/gpu/machine/gpu.cuh"

namespace hearsay::device {

void mix_row(StreamHandle stream, float self_weight, std::span<const WeightedCopy> edges, float* x, std::uint64_t n) {
  Gpu gpu(stream);
  mix_row(gpu, self_weight, edges, x, n);
}

void add_difference(StreamHandle stream, float weight, const float* theirs, const float* ours, float* x,
                    std::uint64_t n) {
  Gpu gpu(stream);
  add_difference(gpu, weight, theirs, ours, x, n);
}

}  // namespace hearsay::device

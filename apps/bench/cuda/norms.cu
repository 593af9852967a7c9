#include "apps/bench/cuda/norms.hpp"

#include "runtime/gpu/machine/gpu.cuh"

namespace hearsay::device {

struct DeviceNorms::Plan {
  Norms<Gpu> norms;
};

DeviceNorms::DeviceNorms(std::span<const SegmentRange> segments) : plan_(new Plan{Norms<Gpu>(segments)}) {}
DeviceNorms::~DeviceNorms() = default;
DeviceNorms::DeviceNorms(DeviceNorms&&) noexcept = default;
DeviceNorms& DeviceNorms::operator=(DeviceNorms&&) noexcept = default;

void DeviceNorms::compute(StreamHandle stream, const float* values, double* norms) {
  Gpu gpu(stream);
  plan_->norms.compute(gpu, values, norms);
}

}  // namespace hearsay::device

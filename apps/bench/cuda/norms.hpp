#pragma once
// Norms of all segments on the GPU, without CUDA's headers (algorithm, order of additions and error:
// runtime/gpu/kernels/norms_algorithm.hpp). What TriggerEngine::decide takes is `segments` doubles.
#include <memory>
#include <span>

#include "runtime/gpu/kernels/norms_algorithm.hpp"
#include "runtime/gpu/machine/memory.hpp"

namespace hearsay::device {

class DeviceNorms {
 public:
  explicit DeviceNorms(std::span<const SegmentRange> segments);
  ~DeviceNorms();
  DeviceNorms(DeviceNorms&&) noexcept;
  DeviceNorms& operator=(DeviceNorms&&) noexcept;

  /// norms[s] ← ‖values[segment s]‖₂; NaN or ∞ if a value is. Device pointers: the whole block, and one double a
  /// segment. Returns at once. One call at a time per object. Throws CommunicationError if a launch fails.
  void compute(StreamHandle stream, const float* values, double* norms);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace hearsay::device

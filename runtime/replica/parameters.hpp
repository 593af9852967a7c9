#pragma once
// A replica: all trainable floats of a rank in one contiguous block, and their gradients in a second one.
//
// One block makes communication, norms and mixing plain loops over floats. LibTorch's tensors are views into it
// (runtime/training/model/model.cpp); this header knows nothing of LibTorch.
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/replica/device.hpp"
#include "runtime/replica/float_block.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

/// The replica x and its gradient g, both laid out alike, where a device has its memory (runtime/replica/device.hpp).
struct Parameters {
  /// In the processor's memory.
  explicit Parameters(Layout layout);
  Parameters(Layout layout, std::shared_ptr<Device> device);
  /// In somebody else's memory, the processor's: layout.size() floats each, which outlive this. Throws ConfigError for
  /// another length.
  Parameters(Layout layout, std::span<float> values, std::span<float> gradients);
  Layout layout;
  std::shared_ptr<Device> device;
  FloatBlock values;
  FloatBlock gradients;
};

/// 64-bit hash (XXH3) of the bytes of a block: equal hashes, equal replicas.
std::uint64_t replica_hash(std::span<const float> values);

}  // namespace hearsay

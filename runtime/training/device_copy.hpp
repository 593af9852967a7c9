#pragma once
// A replica's copy on the device that computes its gradient. The replica itself, which is mixed and sent, stays in the
// processor's memory:
//
//   x → device;  forward, backward;  g → processor
//
// Deviates from a replica that lives on the device in: all of x and g crosses the bus in every iteration, not only what
// is sent. Cost: 4 n bytes there and 4 n back, n floats of the replica, by LibTorch's copies between pageable memories.
#include <torch/torch.h>

#include <memory>
#include <span>

#include "runtime/parameters.hpp"

namespace hearsay {

class DeviceCopy {
 public:
  /// Room on the device for x and g of this replica. Throws CommunicationError if the device cannot give it.
  DeviceCopy(std::shared_ptr<Parameters> replica, torch::Device device);

  torch::Device device() const { return values_.device(); }
  /// The copy's part that belongs to a segment, flat, or its gradient's.
  torch::Tensor values(const Segment& segment) const;
  torch::Tensor gradients(const Segment& segment) const;

  /// x → device, g on the device ← 0.
  void upload();
  /// g → processor.
  void download_gradients();
  void download_gradient(const Segment& segment);
  /// x of these segments → processor: what a forward pass has changed on the device.
  void download_values(std::span<const Segment> segments);

 private:
  std::shared_ptr<Parameters> replica_;
  torch::Tensor values_, gradients_;
};

/// The device with this name ("cpu", "cuda") for a rank: ranks of a host take its GPUs in turn, and share them if there
/// are fewer. Throws CommunicationError if LibTorch cannot use a GPU here.
torch::Device device_for(const std::string& name, int rank_on_host);

}  // namespace hearsay

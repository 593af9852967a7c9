#include "runtime/training/device_copy.hpp"

#include <string>

#include "runtime/base/error.hpp"

namespace hearsay {
namespace {

torch::Tensor on_processor(std::span<float> values) {
  return torch::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, torch::kFloat32);
}

torch::Tensor part(const torch::Tensor& block, const Segment& segment) {
  return block.narrow(0, static_cast<std::int64_t>(segment.offset), static_cast<std::int64_t>(segment.length));
}

}  // namespace

DeviceCopy::DeviceCopy(std::shared_ptr<Parameters> replica, torch::Device device) : replica_(std::move(replica)) {
  const auto options = torch::TensorOptions(torch::kFloat32).device(device);
  const auto length = static_cast<std::int64_t>(replica_->layout.size());
  try {
    values_ = torch::empty({length}, options);
    gradients_ = torch::zeros({length}, options);
  } catch (const c10::Error& error) {
    throw CommunicationError("train.device: no room for a replica of " + std::to_string(8 * length) + " bytes on " +
                             device.str() + ": " + error.what_without_backtrace() +
                             ". Start fewer ranks a GPU, or use train.device: cpu");
  }
}

torch::Tensor DeviceCopy::values(const Segment& segment) const { return part(values_, segment); }
torch::Tensor DeviceCopy::gradients(const Segment& segment) const { return part(gradients_, segment); }

void DeviceCopy::upload() {
  values_.copy_(on_processor(replica_->values.span()));
  gradients_.zero_();
}

void DeviceCopy::download_gradients() { on_processor(replica_->gradients.span()).copy_(gradients_); }

void DeviceCopy::download_gradient(const Segment& segment) {
  on_processor(replica_->gradients.segment(segment)).copy_(gradients(segment));
}

void DeviceCopy::download_values(std::span<const Segment> segments) {
  for (const Segment& segment : segments) on_processor(replica_->values.segment(segment)).copy_(values(segment));
}

torch::Device device_for(const std::string& name, int rank_on_host) {
  if (name == "cpu") return {torch::kCPU};
  const auto devices = static_cast<int>(torch::cuda::device_count());
  if (devices == 0)
    throw CommunicationError("train.device is " + name +
                             ", but LibTorch " TORCH_VERSION
                             " finds no GPU here: it is built without CUDA, or there is no driver. Build against a "
                             "LibTorch with CUDA (CMAKE_PREFIX_PATH), or use train.device: cpu");
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(rank_on_host % devices)};
}

}  // namespace hearsay

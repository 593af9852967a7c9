#include "runtime/gpu/cuda.hpp"

#include "base/error.hpp"

namespace hearsay {

std::shared_ptr<Device> cuda_device(int, std::size_t) {
  throw CommunicationError(
      "train.device is cuda, but this program was built without CUDA kernels. Build it where nvcc is found "
      "(HEARSAY_CUDA, docs/guide/gpu.md), or use train.device: cpu");
}

}  // namespace hearsay

// The GPU as a Device: kernels and copies on a stream of its own, beside the one on which LibTorch computes.
//   end_compute:    our stream waits for what LibTorch has been given so far
//   begin_compute:  LibTorch's stream waits for what ours has been given so far
// so that the processor waits for neither. LibTorch's stream is the default one, of which each rank has its own.
// The same template runs on an emulated GPU (tests/runtime/gpu/exchange_test.cpp).
#include "runtime/gpu/cuda.hpp"

#include <cuda_runtime.h>

#include <algorithm>

#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "runtime/gpu/device_of.hpp"
#include "runtime/gpu/machine/gpu.cuh"

namespace hearsay {
namespace {

using device::check;

/// Makes a GPU the calling thread's for a scope; LibTorch's choice is then as it was.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) {
    check(cudaGetDevice(&before_));
    check(cudaSetDevice(gpu));
  }
  ~CurrentGpu() { cudaSetDevice(before_); }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int before_ = 0;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes));
    memory_.reset(memory);
  }
  std::span<std::byte> span() const { return {static_cast<std::byte*>(memory_.get()), bytes_}; }

 private:
  struct Free {
    void operator()(void* memory) const { cudaFreeHost(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<void, Free> memory_;
};

class Event {
 public:
  Event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    event_.reset(event);
  }
  /// `later` waits for what `earlier` has been given so far.
  void order(cudaStream_t earlier, cudaStream_t later) {
    check(cudaEventRecord(event_.get(), earlier));
    check(cudaStreamWaitEvent(later, event_.get(), 0));
  }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  std::unique_ptr<CUevent_st, Destroy> event_;
};

class CudaBackend {
 public:
  using Machine = device::Gpu;
  using Pinned = PinnedMemory;

  /// `gpu` is the calling thread's.
  explicit CudaBackend(int gpu) : gpu_(gpu), machine_(stream_.handle()) {}

  CurrentGpu use() const { return CurrentGpu(gpu_); }
  Machine& machine() { return machine_; }
  FloatBlock block(std::size_t length) {
    const CurrentGpu current(gpu_);
    void* memory = nullptr;
    const std::size_t bytes = std::max<std::size_t>(length, 1) * sizeof(float);
    if (const cudaError_t code = cudaMalloc(&memory, bytes); code != cudaSuccess) {
      cudaGetLastError();  // forgotten: the GPU itself is well
      throw CommunicationError("train.device: GPU " + std::to_string(gpu_) + " has no room for " +
                               std::to_string(bytes) + " bytes (" + cudaGetErrorString(code) +
                               "). Start fewer ranks a GPU, or use train.device: cpu");
    }
    FloatBlock block(static_cast<float*>(memory), length, [](float* data) { cudaFree(data); });
    check(cudaMemsetAsync(memory, 0, bytes, stream_.handle()));
    return block;
  }
  Pinned pinned(std::size_t bytes) { return PinnedMemory(bytes); }
  /// Not memory that may share its pages with other such memory, nor what the driver refuses.
  std::shared_ptr<void> pin(std::span<std::byte> memory) {
    if (memory.size() < least_pinned) return nullptr;
    const CurrentGpu current(gpu_);
    if (cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable) != cudaSuccess) {
      cudaGetLastError();  // forgotten: copies go through staging memory
      return nullptr;
    }
    return {memory.data(), [](void* registered) { cudaHostUnregister(registered); }};
  }
  void read(const std::byte* there, std::span<std::byte> here) {
    check(cudaMemcpyAsync(here.data(), there, here.size(), cudaMemcpyDeviceToHost, stream_.handle()));
  }
  void write(std::span<const std::byte> here, std::byte* there) {
    check(cudaMemcpyAsync(there, here.data(), here.size(), cudaMemcpyHostToDevice, stream_.handle()));
  }
  void copy(const void* from, void* to, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.handle()));
  }
  void clear(void* to, std::size_t bytes) { check(cudaMemsetAsync(to, 0, bytes, stream_.handle())); }
  void wait() { device::synchronize(stream_.handle()); }
  CudaBackend beside() const { return CudaBackend(gpu_); }
  void follow(CudaBackend& earlier) { theirs_.order(earlier.stream_.handle(), stream_.handle()); }
  void begin_compute() {
    const CurrentGpu current(gpu_);
    ours_.order(stream_.handle(), cudaStreamLegacy);
  }
  void end_compute() {
    const CurrentGpu current(gpu_);
    theirs_.order(cudaStreamLegacy, stream_.handle());
  }

 private:
  static constexpr std::size_t least_pinned = 1 << 18;  // twice what malloc takes from a heap
  int gpu_;
  device::Stream stream_;
  Machine machine_;
  Event ours_, theirs_;
};

}  // namespace

std::shared_ptr<Device> cuda_device(int gpu, std::size_t staging_bytes) {
  const CurrentGpu current(gpu);
  return std::make_shared<DeviceOf<CudaBackend>>(CudaBackend(gpu), staging_bytes);
}

}  // namespace hearsay

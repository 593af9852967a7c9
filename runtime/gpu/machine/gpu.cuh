#pragma once
// The GPU's side of block.hpp: what a block's phases, scans and atomics are on the hardware, and how kernels start.
#include <cuda_runtime.h>

#include <cub/block/block_scan.cuh>

#include "runtime/gpu/machine/block.hpp"
#include "runtime/gpu/machine/check.cuh"
#include "runtime/gpu/machine/memory.hpp"

namespace hearsay::device {

template <class T>
class DeviceRegister {
 public:
  __device__ T& operator[](unsigned) { return value_; }

 private:
  T value_;
};

template <unsigned Threads>
class DeviceBlock {
 public:
  static constexpr unsigned threads = Threads;
  template <class T>
  using PerThread = DeviceRegister<T>;

  __device__ unsigned index() const { return blockIdx.x; }
  __device__ unsigned blocks() const { return gridDim.x; }

  template <class Body>
  __device__ void phase(Body body) {
    body(threadIdx.x);
    __syncthreads();
  }

  template <class T>
  __device__ T exclusive_scan(PerThread<T>& values) {
    using Scan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ typename Scan::TempStorage storage;
    T sum;
    Scan(storage).ExclusiveSum(values[0], values[0], sum);
    __syncthreads();
    return sum;
  }

  template <class T>
  __device__ T read(const T* pointer) {
    const T value = *pointer;
    __syncthreads();
    return value;
  }

  // The barrier before, which ends a phase, and thread 0's fences order what all threads of this block wrote before its
  // arrival, and what the last block reads after all arrivals: as cooperative groups wait for a grid, without waiting.
  __device__ bool is_last(std::uint32_t* arrivals) {
    bool last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      last = atomicAdd(arrivals, 1U) + 1U == gridDim.x;
      __threadfence();
    }
    return __syncthreads_or(last ? 1 : 0) != 0;
  }

  static __device__ std::uint32_t add(std::uint32_t* where, std::uint32_t what) { return atomicAdd(where, what); }
  static __device__ void lower(std::uint32_t* where, std::uint32_t to) { atomicMin(where, to); }
  static __device__ Float4 load(const float* from) { return *reinterpret_cast<const Float4*>(from); }
  static __device__ void store(const Float4& stored, float* to) { *reinterpret_cast<Float4*>(to) = stored; }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, 1024 / Kernel::threads)
    run_kernel(const __grid_constant__ Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  DeviceBlock<Kernel::threads> block;
  kernel(block, shared);
}

/// Launches kernels on one stream; waits for nothing.
class Gpu {
 public:
  template <class T>
  using Buffer = DeviceBuffer<T>;

  explicit Gpu(StreamHandle stream = nullptr) : stream_(stream), blocks_(2 * multiprocessors()) {}

  /// Two blocks of 512 threads on every multiprocessor: 64 registers a thread, and half of its threads loading.
  unsigned resident_blocks() const { return blocks_; }
  StreamHandle stream() const { return stream_; }

  template <class Kernel>
  void run(unsigned blocks, const Kernel& kernel) {
    if (blocks == 0) return;
    run_kernel<<<blocks, Kernel::threads, 0, stream_>>>(kernel);
    check(cudaGetLastError());
  }

 private:
  StreamHandle stream_;
  unsigned blocks_;
};

}  // namespace hearsay::device

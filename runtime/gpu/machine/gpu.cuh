#pragma once
// The GPU's side of block.hpp: what a block's phases, scans and atomics are on the hardware, and how kernels start.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

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

/// Kernels of one launch, one after the other: each sees all that the one before it wrote, in whatever block.
template <class First, class... Rest>
struct KernelChain {
  First first;
  KernelChain<Rest...> rest;
  static constexpr std::size_t shared_bytes =
      std::max(sizeof(typename First::Shared), KernelChain<Rest...>::shared_bytes);

  template <class Block>
  __device__ void operator()(Block& block, void* shared) const {
    first(block, *static_cast<typename First::Shared*>(shared));
    cooperative_groups::this_grid().sync();
    rest(block, shared);
  }
};
template <class Last>
struct KernelChain<Last> {
  Last last;
  static constexpr std::size_t shared_bytes = sizeof(typename Last::Shared);

  template <class Block>
  __device__ void operator()(Block& block, void* shared) const {
    last(block, *static_cast<typename Last::Shared*>(shared));
  }
};

template <unsigned Threads, class Chain>
__global__ void __launch_bounds__(Threads, 1024 / Threads) run_chain(const __grid_constant__ Chain chain) {
  __shared__ alignas(16) unsigned char shared[Chain::shared_bytes];
  DeviceBlock<Threads> block;
  chain(block, shared);
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

  /// One launch instead of one a kernel: blocks wait for each other between two kernels, which takes a fraction of the
  /// time. At most `resident_blocks` blocks, of equally many threads in all kernels.
  template <class First, class... Rest>
  void run_in_turn(unsigned blocks, const First& first, const Rest&... rest) {
    static_assert(((First::threads == Rest::threads) && ...));
    if (blocks == 0) return;
    using Chain = KernelChain<First, Rest...>;
    Chain chain = chain_of(first, rest...);
    void* arguments[] = {&chain};
    const auto kernel = reinterpret_cast<const void*>(&run_chain<First::threads, Chain>);
    check(cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(First::threads), arguments, 0, stream_));
  }

 private:
  template <class First, class... Rest>
  static KernelChain<First, Rest...> chain_of(const First& first, const Rest&... rest) {
    if constexpr (sizeof...(Rest) == 0)
      return {first};
    else
      return {first, chain_of(rest...)};
  }

  StreamHandle stream_;
  unsigned blocks_;
};

}  // namespace hearsay::device

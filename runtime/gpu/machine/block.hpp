#pragma once
// How kernels are written here: once, for the GPU and for its emulation on the processor.
//
// A kernel is a struct of its arguments with
//   static constexpr unsigned threads;            // of a block
//   struct Shared { … };                          // a block's shared memory, trivial
//   template <class Block> HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const;
// The body runs once a block. `Block` is DeviceBlock (gpu.cuh) or EmulatedBlock (emulator.hpp):
//   block.index(), block.blocks()      of the grid
//   Block::template PerThread<T>       a register of every thread; register_[t] is that of thread t
//   block.phase(body)                  body(t) for every thread t, then a barrier
//   block.exclusive_scan(registers)    register t ← the sum of those before it; returns the sum of all
//   block.read(pointer)                *pointer, the same for all threads, then a barrier
//   block.is_last(arrivals)            true in the block that is the last of the grid to come here; it then sees all
//                                      that the others wrote. `arrivals` was 0 before the launch
//   Block::add / lower / load / store  atomic addition and minimum; 16 bytes at once
// Rule: memory is touched within a phase or by `read` only, and no two threads of one phase touch the same word unless
// both read it or both use atomics. Every phase ends with a barrier, so none can be forgotten. Blocks of one kernel do
// not wait for each other; kernels that are to see each other's work are run in turn, by one launch or by several. What
// a kernel does must not depend on the order of threads or blocks; the emulator runs them in many.
#include <cstddef>
#include <cstdint>

// The one macro of the project marks what nvcc compiles for the GPU and every other compiler for the processor.
#if defined(__CUDACC__)
#define HEARSAY_DEVICE __device__
#else
#define HEARSAY_DEVICE
#endif

namespace hearsay::device {

/// Four neighbouring floats, moved by one access.
struct alignas(16) Float4 {
  float at[4];
};

/// values[first, first + 4), with 0 from `end` on. `aligned`: values + first lies on a multiple of 16 bytes.
template <class Block>
HEARSAY_DEVICE Float4 load4(const float* values, std::uint64_t first, std::uint64_t end, bool aligned) {
  if (aligned && first + 4 <= end) return Block::load(values + first);
  Float4 loaded;
  for (unsigned c = 0; c < 4; ++c) loaded.at[c] = first + c < end ? values[first + c] : 0.0F;
  return loaded;
}

/// values[first, first + 4) below `end` ← stored.
template <class Block>
HEARSAY_DEVICE void store4(const Float4& stored, float* values, std::uint64_t first, std::uint64_t end, bool aligned) {
  if (aligned && first + 4 <= end) return Block::store(stored, values + first);
  for (unsigned c = 0; c < 4; ++c) {
    if (first + c < end) values[first + c] = stored.at[c];
  }
}

/// The sum, maximum … of one register of every thread: a tree, so that sums of floats have the same bits everywhere.
/// `scratch` has Block::threads entries.
template <class Block, class T, class Combine>
HEARSAY_DEVICE T reduce(Block& block, T* scratch, typename Block::template PerThread<T>& values, Combine combine) {
  block.phase([&](unsigned t) { scratch[t] = values[t]; });
  for (unsigned width = Block::threads / 2; width > 0; width /= 2) {
    block.phase([&](unsigned t) {
      if (t < width) scratch[t] = combine(scratch[t], scratch[t + width]);
    });
  }
  return block.read(scratch);
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// The share [first, end) of block `index` of `blocks` when `count` things are dealt out in order.
struct Share {
  std::uint64_t first, end;
};
constexpr Share share_of(std::uint64_t count, unsigned index, unsigned blocks) {
  const std::uint64_t each = ceil_div(count, blocks);
  const std::uint64_t first = each * index < count ? each * index : count;
  return {first, first + each < count ? first + each : count};
}

/// Whether 16-byte accesses can start at both (the second may be null).
inline bool can_vectorise(const void* a, const void* b = nullptr) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % sizeof(Float4) == 0;
}

}  // namespace hearsay::device

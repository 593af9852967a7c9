#pragma once
// A GPU on the processor: in each phase the threads of a block run one after another, in orders that change from phase
// to phase; blocks run one after another in any order, or several at a time, so that ThreadSanitizer sees what blocks
// share. What is wrong about a kernel but for the order of its threads shows as another result under another seed.
// Not emulated: CUB's warp primitives (a loop stands for BlockScan), registers, and how weak the GPU's memory is.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

constexpr int never_written = 0xa5;  // what fresh memory is filled with

/// One register of every thread; starts with no useful value, as on the GPU.
template <class T, unsigned Threads>
class EmulatedRegisters {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  EmulatedRegisters() : values_(Threads) {
    std::memset(static_cast<void*>(values_.data()), never_written, Threads * sizeof(T));
  }
  T& operator[](unsigned thread) { return values_[thread]; }

 private:
  std::vector<T> values_;
};

template <unsigned Threads>
class EmulatedBlock {
  static_assert((Threads & (Threads - 1)) == 0, "orders are made for powers of two");

 public:
  static constexpr unsigned threads = Threads;
  template <class T>
  using PerThread = EmulatedRegisters<T, Threads>;

  /// `seed` 0: threads in their own order, in every phase.
  EmulatedBlock(unsigned index, unsigned blocks, std::uint64_t seed) : index_(index), blocks_(blocks), state_(seed) {}

  unsigned index() const { return index_; }
  unsigned blocks() const { return blocks_; }

  template <class Body>
  void phase(Body body) {
    if (state_ != 0) state_ = scramble(state_);
    const auto stride = static_cast<unsigned>(state_ >> 32) | 1U;  // odd: every thread comes once
    const auto first = static_cast<unsigned>(state_);
    for (unsigned i = 0; i < Threads; ++i) body((first + (state_ == 0 ? i : stride * i)) % Threads);
  }

  template <class T>
  T exclusive_scan(PerThread<T>& values) {
    T sum{};
    for (unsigned t = 0; t < Threads; ++t) {
      const T own = values[t];
      values[t] = sum;
      sum += own;
    }
    return sum;
  }

  template <class T>
  T read(const T* pointer) {
    return *pointer;
  }

  bool is_last(std::uint32_t* arrivals) { return std::atomic_ref(*arrivals).fetch_add(1) + 1 == blocks_; }

  static std::uint32_t add(std::uint32_t* where, std::uint32_t what) {
    return std::atomic_ref(*where).fetch_add(what, std::memory_order_relaxed);
  }
  static void lower(std::uint32_t* where, std::uint32_t to) {
    const std::atomic_ref now(*where);
    std::uint32_t before = now.load(std::memory_order_relaxed);
    while (to < before && !now.compare_exchange_weak(before, to, std::memory_order_relaxed)) continue;
  }

  static Float4 load(const float* from) {
    require_aligned(from);
    Float4 loaded;
    std::memcpy(&loaded, from, sizeof loaded);
    return loaded;
  }
  static void store(const Float4& stored, float* to) {
    require_aligned(to);
    std::memcpy(to, &stored, sizeof stored);
  }

 private:
  static void require_aligned(const void* address) {
    if (!can_vectorise(address)) throw std::logic_error("emulator: 16 bytes at an address that is no multiple of 16");
  }

  unsigned index_, blocks_;
  std::uint64_t state_;
};

/// Memory of the emulated GPU: nothing useful in it at first.
template <class T>
class EmulatedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  EmulatedBuffer() = default;
  explicit EmulatedBuffer(std::size_t size)
      : size_(size), memory_(new (std::align_val_t{alignment}) std::byte[bytes()]) {
    std::memset(memory_.get(), never_written, bytes());
  }
  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }
  std::size_t size() const { return size_; }
  void upload(std::span<const T> from) { copy(from.data(), data(), from.size_bytes()); }
  void download(std::span<T> to) const { copy(data(), to.data(), to.size_bytes()); }

 private:
  static constexpr std::size_t alignment = 256;  // cudaMalloc's
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{alignment}); }
  };
  std::size_t bytes() const { return size_ * sizeof(T); }
  void copy(const void* from, void* to, std::size_t count) const {
    if (count > bytes()) throw std::logic_error("emulator: a copy beyond the buffer's end");
    if (count > 0) std::memcpy(to, from, count);
  }

  std::size_t size_ = 0;
  std::unique_ptr<std::byte[], Free> memory_;
};

/// Runs kernels in the order that `seed` gives; 0: the natural one. `workers`: how many blocks run at a time.
class Emulator {
 public:
  template <class T>
  using Buffer = EmulatedBuffer<T>;

  explicit Emulator(std::uint64_t seed, unsigned blocks = 5, unsigned workers = 1)
      : random_(seed), seed_(seed), blocks_(blocks), workers_(workers) {}

  /// Blocks that a launch should have to fill the machine.
  unsigned resident_blocks() const { return blocks_; }

  template <class Kernel>
  void run(unsigned blocks, const Kernel& kernel) {
    std::vector<unsigned> order(blocks);
    std::iota(order.begin(), order.end(), 0U);
    if (seed_ != 0) random_.shuffle(std::span(order));
    const std::uint64_t seed = seed_ == 0 ? 0 : random_.engine()();
    std::atomic<unsigned> next{0};
    const auto work = [&] {
      for (unsigned i = next++; i < blocks; i = next++)
        run_block(EmulatedBlock<Kernel::threads>(order[i], blocks, seed_ == 0 ? 0 : seed + i), kernel);
    };
    std::vector<std::jthread> others;
    for (unsigned worker = 1; worker < std::min(workers_, blocks); ++worker) others.emplace_back(work);
    work();
  }

  /// Kernels of equally many threads, each of which sees all that the one before it wrote.
  template <class First, class... Rest>
  void run_in_turn(unsigned blocks, const First& first, const Rest&... rest) {
    static_assert(((First::threads == Rest::threads) && ...));
    run(blocks, first);
    (run(blocks, rest), ...);
  }

 private:
  template <class Block, class Kernel>
  static void run_block(Block block, const Kernel& kernel) {
    const auto shared = std::make_unique<typename Kernel::Shared>();
    std::memset(static_cast<void*>(shared.get()), never_written, sizeof(typename Kernel::Shared));
    kernel(block, *shared);
  }

  Random random_;
  std::uint64_t seed_;
  unsigned blocks_, workers_;
};

}  // namespace hearsay::device

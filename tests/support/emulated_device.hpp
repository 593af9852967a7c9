#pragma once
// A GPU to run exchanges on without one: the kernels' emulation, in memory that the processor faults on unless it is
// the model's turn, and with passes that are done only when somebody waits for them.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>

#include "runtime/gpu/device_of.hpp"
#include "runtime/gpu/machine/emulator.hpp"

namespace hearsay::test {

/// Kernels and copies in the order in which they were asked for, none of which has been done yet.
class LazyQueue {
 public:
  void push(std::function<void()> pass) { passes_.push_back(std::move(pass)); }
  void run() {
    for (; !passes_.empty(); passes_.pop_front()) passes_.front()();
  }

 private:
  std::deque<std::function<void()>> passes_;
};

/// What has made a GPU wait as a whole, of all devices: memory that is asked for or given back, and copies to or from
/// pageable memory.
struct DeviceWide {
  static inline std::atomic<std::uint64_t> waits{0};
};

/// Memory whose asking for, and whose copies, are counted.
template <class T>
class CountedBuffer : public device::EmulatedBuffer<T> {
  using Base = device::EmulatedBuffer<T>;

 public:
  CountedBuffer() = default;
  explicit CountedBuffer(std::size_t size) : Base(size) { ++DeviceWide::waits; }
  void upload(std::span<const T> from) {
    ++DeviceWide::waits;
    Base::upload(from);
  }
  void download(std::span<T> to) const {
    ++DeviceWide::waits;
    Base::download(to);
  }
};

/// The emulator behind a queue.
class LazyMachine {
 public:
  template <class T>
  using Buffer = CountedBuffer<T>;

  LazyMachine(LazyQueue& queue, std::uint64_t seed) : queue_(queue), emulator_(seed) {}
  unsigned resident_blocks() const { return emulator_.resident_blocks(); }
  template <class Kernel>
  void run(unsigned blocks, const Kernel& kernel) {
    queue_.push([this, blocks, kernel] { emulator_.run(blocks, kernel); });
  }
  template <class... Kernels>
  void run_in_turn(unsigned blocks, const Kernels&... kernels) {
    queue_.push([this, blocks, kernels...] { emulator_.run_in_turn(blocks, kernels...); });
  }

 private:
  LazyQueue& queue_;
  device::Emulator emulator_;
};

/// Blocks that nobody can look at while they are locked: who tries dies of SIGSEGV.
class LockedBlocks {
 public:
  float* allocate(std::size_t length) {
    const std::lock_guard lock(mutex_);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (std::max<std::size_t>(length, 1) * sizeof(float) + page - 1) / page * page;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    blocks_[static_cast<float*>(memory)] = bytes;
    if (users_ == 0) protect(PROT_NONE);
    return static_cast<float*>(memory);
  }
  void free(float* block) {
    const std::lock_guard lock(mutex_);
    munmap(block, blocks_.at(block));
    blocks_.erase(block);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) protect(PROT_NONE);
  }

 private:
  void protect(int how) {
    for (const auto& [block, bytes] : blocks_)
      if (mprotect(block, bytes, how) != 0) throw std::system_error(errno, std::generic_category(), "mprotect");
  }
  std::mutex mutex_;  // lanes have a thread of their own
  std::map<float*, std::size_t> blocks_;
  int users_ = 0;
};

/// Bytes that crossed the bus.
using BusCounter = std::shared_ptr<std::uint64_t>;

class EmulatedBackend {
  struct State {
    State(std::uint64_t of_machine, BusCounter counter, std::shared_ptr<LockedBlocks> memory)
        : seed(of_machine), crossed(std::move(counter)), machine(queue, seed), blocks(std::move(memory)) {}
    void count(std::size_t bytes) const { std::atomic_ref(*crossed).fetch_add(bytes, std::memory_order_relaxed); }
    const std::uint64_t seed;
    const BusCounter crossed;
    LazyQueue queue;
    LazyMachine machine;
    const std::shared_ptr<LockedBlocks> blocks;
  };
  /// Opens the blocks for a scope.
  class Use {
   public:
    explicit Use(State& state) : state_(state) { state_.blocks->open(); }
    ~Use() { state_.blocks->close(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    State& state_;
  };

 public:
  using Machine = LazyMachine;
  class Pinned {
   public:
    explicit Pinned(std::size_t bytes) : bytes_(bytes) {}
    std::span<std::byte> span() { return bytes_; }

   private:
    std::vector<std::byte> bytes_;
  };

  EmulatedBackend(std::uint64_t seed, BusCounter counter)
      : EmulatedBackend(seed, std::move(counter), std::make_shared<LockedBlocks>()) {}
  Machine& machine() { return state_->machine; }
  Use use() { return Use(*state_); }
  FloatBlock block(std::size_t length) {
    ++DeviceWide::waits;
    return {state_->blocks->allocate(length), length, [state = state_](float* block) {
              const Use use(*state);
              state->queue.run();
              state->blocks->free(block);
            }};
  }
  Pinned pinned(std::size_t bytes) {
    ++DeviceWide::waits;
    return Pinned(bytes);
  }
  std::shared_ptr<void> pin(std::span<std::byte> memory) {
    ++DeviceWide::waits;
    return {memory.data(), [](void*) {}};
  }
  void read(const std::byte* there, std::span<std::byte> here) {
    state_->count(here.size());
    state_->queue.push([=] { std::memcpy(here.data(), there, here.size()); });
  }
  void write(std::span<const std::byte> here, std::byte* there) {
    state_->count(here.size());
    state_->queue.push([=] { std::memcpy(there, here.data(), here.size()); });
  }
  void copy(const void* from, void* to, std::size_t bytes) {
    state_->queue.push([=] {
      if (bytes > 0) std::memcpy(to, from, bytes);
    });
  }
  void clear(void* to, std::size_t bytes) {
    state_->queue.push([=] { std::memset(to, 0, bytes); });
  }
  void wait() { state_->queue.run(); }
  EmulatedBackend beside() const { return {state_->seed + 1, state_->crossed, state_->blocks}; }
  /// By the thread of `earlier`.
  void follow(EmulatedBackend& earlier) { earlier.wait(); }
  void begin_compute() {
    state_->blocks->open();
    state_->queue.run();
  }
  void end_compute() { state_->blocks->close(); }

 private:
  EmulatedBackend(std::uint64_t seed, BusCounter counter, std::shared_ptr<LockedBlocks> blocks)
      : state_(std::make_shared<State>(seed, std::move(counter), std::move(blocks))) {}

  std::shared_ptr<State> state_;
};

/// `staging_bytes`: few, so that copies come in pieces.
inline std::shared_ptr<Device> emulated_device(std::uint64_t seed, std::size_t staging_bytes = 4096,
                                               BusCounter crossed = std::make_shared<std::uint64_t>()) {
  return std::make_shared<DeviceOf<EmulatedBackend>>(EmulatedBackend(seed, std::move(crossed)), staging_bytes);
}

}  // namespace hearsay::test

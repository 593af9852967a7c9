#pragma once
// RemoteMemory between threads of one process: what a window is to ranks, without MPI.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include "runtime/transport/remote_memory.hpp"

namespace hearsay::test {

/// The memories of all ranks, one a rank, 64-byte aligned, zero at first. Outlives every LocalMemory made of it.
class LocalBlocks {
 public:
  /// bytes[r] is the size of rank r's memory.
  explicit LocalBlocks(std::span<const std::size_t> bytes) {
    for (const std::size_t size : bytes) {
      sizes_.push_back(size);
      blocks_.emplace_back(new (alignment) std::byte[size]());
    }
  }
  std::span<std::byte> operator[](int rank) {
    return {blocks_.at(static_cast<std::size_t>(rank)).get(), sizes_[static_cast<std::size_t>(rank)]};
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Deleter {
    void operator()(std::byte* p) const { ::operator delete[](p, alignment); }
  };
  std::vector<std::unique_ptr<std::byte[], Deleter>> blocks_;
  std::vector<std::size_t> sizes_;
};

/// One rank's end; it says that it has `patience`. A put is a copy at once, word by word, each released, so that a rank
/// may look at what is being put; a store is an atomic one. So the two waits have nothing to wait for. A put leaves
/// alone what has its value already: a small packet may be taken, and be read plainly, before the last words of it are
/// put that change nothing. Throws std::logic_error where a put would leave the target's memory.
class LocalMemory final : public RemoteMemory {
 public:
  LocalMemory(LocalBlocks& blocks, int rank, int patience = 0) : blocks_(blocks), rank_(rank), patience_(patience) {}

  std::span<std::byte> own() override { return blocks_[rank_]; }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    range(target, offset, bytes.size());
    for (; !bytes.empty(); offset += sizeof(std::uint64_t)) {
      const auto there = word_at(target, offset);
      const std::uint64_t old = there.load(std::memory_order_relaxed);
      std::uint64_t word = old;
      const std::size_t length = std::min(sizeof word, bytes.size());
      std::memcpy(&word, bytes.data(), length);
      if (word != old) there.store(word, std::memory_order_release);
      bytes = bytes.subspan(length);
    }
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    word_at(target, offset).store(word, std::memory_order_release);
  }
  std::optional<std::uint64_t> peek(int target, std::size_t offset) override {
    return word_at(target, offset).load(std::memory_order_acquire);
  }
  bool flush(int) override { return true; }
  void sync() override {}
  int patience() const override { return patience_; }

 private:
  std::atomic_ref<std::uint64_t> word_at(int target, std::size_t offset) {
    if (offset % sizeof(std::uint64_t) != 0) throw std::logic_error("local memory: a word at an uneven offset");
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(range(target, offset, sizeof(std::uint64_t)).data()));
  }
  std::span<std::byte> range(int target, std::size_t offset, std::size_t length) {
    const auto memory = blocks_[target];
    if (offset > memory.size() || length > memory.size() - offset) {
      throw std::logic_error("local memory: a write beyond the end of the target's memory");
    }
    return memory.subspan(offset, length);
  }

  LocalBlocks& blocks_;
  int rank_, patience_;
};

}  // namespace hearsay::test

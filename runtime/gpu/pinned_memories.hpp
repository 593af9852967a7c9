#pragma once
// Which of the processor's memory is pinned, so that a device reads and writes it by itself: no pass of the processor,
// and no wait for staging memory to be free again.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace hearsay {

/// Any thread may give memory back while another asks.
class PinnedMemories {
 public:
  void add(std::span<const std::byte> memory) {
    const std::lock_guard lock(mutex_);
    all_.push_back(memory);
  }
  void remove(std::span<const std::byte> memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const auto& one) { return one.data() == memory.data(); });
  }
  /// Whether one of them holds all of this.
  bool covers(std::span<const std::byte> part) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [&](const auto& one) {
      return part.data() >= one.data() && part.data() + part.size() <= one.data() + one.size();
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::span<const std::byte>> all_;
};

/// Memory is one of them as long as this lives.
class Pin {
 public:
  Pin(std::shared_ptr<PinnedMemories> all, std::span<const std::byte> here, std::shared_ptr<void> memory)
      : all_(std::move(all)), here_(here), memory_(std::move(memory)) {
    all_->add(here_);
  }
  ~Pin() { all_->remove(here_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  std::shared_ptr<PinnedMemories> all_;
  std::span<const std::byte> here_;
  std::shared_ptr<void> memory_;
};

}  // namespace hearsay

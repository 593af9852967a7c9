#pragma once
// All copies between a device and the processor go through one piece of processor memory that the bus can read and
// write by itself (pinned), however long they are: from the device into it, and on when the device is waited for; into
// it at once, and on to the device in the order of its passes.
// Cost: one more pass of the processor over what is copied; no memory that grows with the replica.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace hearsay {

/// Backend: as device_of.hpp says of it.
template <class Backend>
class Staging {
 public:
  Staging(Backend& backend, std::size_t bytes) : backend_(backend), memory_(backend.pinned(bytes)) {}

  /// here ← there, once `wait` returns.
  void bring(const void* there, std::span<std::byte> here) {
    const auto* source = static_cast<const std::byte*>(there);
    for (std::size_t done = 0; done < here.size();) {
      const std::span<std::byte> staged = room(here.size() - done);
      backend_.read(source + done, staged);
      arriving_.push_back({staged, here.subspan(done, staged.size())});
      done += staged.size();
    }
  }
  /// there ← here, which is free again when the call returns.
  void send(std::span<const std::byte> here, void* there) {
    auto* target = static_cast<std::byte*>(there);
    for (std::size_t done = 0; done < here.size();) {
      const std::span<std::byte> staged = room(here.size() - done);
      std::memcpy(staged.data(), here.data() + done, staged.size());
      backend_.write(staged, target + done);
      done += staged.size();
    }
  }
  void wait() {
    backend_.wait();
    for (const Arriving& part : arriving_) std::memcpy(part.here.data(), part.staged.data(), part.staged.size());
    arriving_.clear();
    used_ = 0;
  }

 private:
  struct Arriving {
    std::span<const std::byte> staged;
    std::span<std::byte> here;
  };
  /// At least one byte, and up to `wanted`, that nobody uses.
  std::span<std::byte> room(std::size_t wanted) {
    const std::span<std::byte> all = memory_.span();
    if (used_ == all.size()) wait();
    const auto staged = all.subspan(used_, std::min(wanted, all.size() - used_));
    used_ += staged.size();
    return staged;
  }

  Backend& backend_;
  typename Backend::Pinned memory_;
  std::vector<Arriving> arriving_;
  std::size_t used_ = 0;
};

}  // namespace hearsay

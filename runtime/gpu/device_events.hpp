#pragma once
// Events of single values on a device, with the kernels of runtime/gpu/kernels/events_algorithm.hpp. What is news comes
// to the processor, where the code writes it; nothing else does.
// Cost: 3 launches a packet, 16 bytes a value; a second wait where events are many more than in the packet before.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/device_selection.hpp"
#include "runtime/gpu/kernels/events_algorithm.hpp"

namespace hearsay {

/// All segments that are begun are one selection.
template <class Backend>
class DeviceEvents final : public ChangeSelection {
 public:
  DeviceEvents(Device& device, Backend& backend, Staging<Backend>& staging, const Layout& layout,
               std::span<const device::SegmentRange> ranges)
      : device_(device),
        backend_(backend),
        staging_(staging),
        layout_(layout),
        events_(ranges),
        least_there_(layout.count()),
        least_(layout.count(), device::no_level),
        asked_(layout.count()),
        ends_(layout.count()),
        first_bad_(layout.count()) {}
  ~DeviceEvents() override { wait_before_leaving(device_); }
  DeviceEvents(const DeviceEvents&) = delete;
  DeviceEvents& operator=(const DeviceEvents&) = delete;

  /// All of x and copy are segments of the same two blocks, and `zone` > 0.
  void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t, float zone) override {
    x_ = x.data() - layout_[s].offset;
    copy_ = copy.data() - layout_[s].offset;
    least_[s] = magnitude_bits(zone);
    asked_[s] = {x, copy};
  }
  void launch() override {
    if (x_ == nullptr) return;
    const auto use = backend_.use();
    staging_.send(std::as_bytes(std::span(least_)), least_there_.data());
    events_.count(backend_.machine(), x_, copy_, least_there_.data());
    emit();
    staging_.bring(events_.ends(), std::as_writable_bytes(std::span(ends_)));
    staging_.bring(events_.first_bad(), std::as_writable_bytes(std::span(first_bad_)));
    bring(std::min(capacity(), usual_ + usual_ / 4 + 64));
    whole_ = false;
  }
  void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    if (first_bad_[s] != device::no_position) refuse_change(device_, asked_[s].x, asked_[s].copy, first_bad_[s]);
    if (!whole_) bring_all();
    const auto begin = static_cast<std::ptrdiff_t>(s == 0 ? 0 : ends_[s - 1]), end = std::ptrdiff_t{ends_[s]};
    positions.assign(positions_.begin() + begin, positions_.begin() + end);
    values.assign(values_.begin() + begin, values_.begin() + end);
  }

 private:
  using Machine = typename Backend::Machine;
  struct Asked {
    std::span<const float> x, copy;
  };

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(there_.positions.size()); }
  void emit() {
    events_.emit(backend_.machine(), x_, copy_, least_there_.data(), there_.positions.data(), there_.values.data(),
                 capacity());
  }
  void bring(std::uint32_t entries) {
    positions_.resize(entries), values_.resize(entries);
    staging_.bring(there_.positions.data(), std::as_writable_bytes(std::span(positions_)));
    staging_.bring(there_.values.data(), std::as_writable_bytes(std::span(values_)));
  }
  /// Whatever has not come with the first wait. Nobody has changed x or the copy since `launch`.
  void bring_all() {
    const std::uint32_t found = ends_.back();
    if (found > positions_.size()) {
      const auto use = backend_.use();
      if (found > capacity()) {
        there_ = DeviceEntries<Machine>(std::min<std::size_t>(found + std::size_t{found} / 4, layout_.size()));
        emit();
      }
      bring(found);
      staging_.wait();
    }
    usual_ = found;
    whole_ = true;
    x_ = copy_ = nullptr;
    std::ranges::fill(least_, device::no_level);
  }

  Device& device_;
  Backend& backend_;
  Staging<Backend>& staging_;
  const Layout& layout_;
  device::Events<Machine> events_;
  typename Machine::template Buffer<std::int32_t> least_there_;
  DeviceEntries<Machine> there_;  // as many as were ever found at once
  std::vector<std::int32_t> least_;
  std::vector<Asked> asked_;
  const float *x_ = nullptr, *copy_ = nullptr;  // the blocks, on the device
  std::vector<std::uint32_t> ends_, first_bad_;
  std::vector<std::uint32_t> positions_;
  std::vector<float> values_;
  std::uint32_t usual_ = 0;  // entries of the packet before
  bool whole_ = false;       // all entries are here
};

}  // namespace hearsay

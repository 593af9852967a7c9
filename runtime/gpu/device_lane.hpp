#pragma once
// A lane of a device: two streams of its own, two pinned buffers, and a kernel that adds what has come.
// Cost of an addition: a piece goes in, is added and comes out on one stream, while the next one does on the other:
// 8 bytes a value over the bus, both ways at once; 12 bytes a value of the device's memory; 8 MiB of it for pieces.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/gpu/kernels/mixing_algorithm.hpp"
#include "runtime/replica/device.hpp"

namespace hearsay {

/// Backend: as device_of.hpp says of it.
template <class Backend>
class DeviceLane final : public Lane {
 public:
  DeviceLane(Backend& device, std::size_t most)
      : device_(device),
        most_(std::max<std::size_t>(most, 1)),
        sides_{Side(device, most_, std::min(most_, piece)), Side(device, most_, std::min(most_, piece))} {}
  ~DeviceLane() override {
    try {
      for (Side& side : sides_) {
        const auto use = side.backend.use();
        side.backend.wait();
      }
    } catch (const CommunicationError&) {
      // As in wait_before_leaving.
    }
  }
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  void follow() override {
    const auto use = device_.use();
    const std::lock_guard lock(ordering_);
    for (Side& side : sides_) side.backend.follow(device_);
  }
  std::span<float> buffer(unsigned which) override {
    return {reinterpret_cast<float*>(sides_[which].pinned.span().data()), most_};
  }
  void fetch(std::span<const float> values, unsigned which) override {
    const auto use = sides_[which].backend.use();
    sides_[which].backend.read(reinterpret_cast<const std::byte*>(values.data()), bytes(which, 0, values.size()));
  }
  void put(unsigned which, std::span<float> values) override {
    const auto use = sides_[which].backend.use();
    sides_[which].backend.write(bytes(which, 0, values.size()), reinterpret_cast<std::byte*>(values.data()));
  }
  void add(unsigned which, std::span<float> values) override {
    const auto use = sides_[which].backend.use();
    unsigned side = which;
    for (std::size_t done = 0; done < values.size(); side = 1 - side) {
      const auto part = values.subspan(done, std::min(piece, values.size() - done));
      add_piece(sides_[side], bytes(which, done, part.size()), part);
      done += part.size();
    }
    const std::lock_guard lock(ordering_);
    sides_[which].backend.follow(sides_[1 - which].backend);
  }
  void wait(unsigned which) override {
    const auto use = sides_[which].backend.use();
    sides_[which].backend.wait();
  }

 private:
  using Machine = typename Backend::Machine;
  static constexpr std::size_t piece = std::size_t{1} << 20;  // values

  struct Side {
    Side(Backend& device, std::size_t most, std::size_t of_piece)
        : backend(device.beside()), pinned(device.pinned(most * sizeof(float))), arrived(of_piece) {}
    Backend backend;
    typename Backend::Pinned pinned;
    typename Machine::template Buffer<float> arrived;
  };

  std::span<std::byte> bytes(unsigned which, std::size_t first, std::size_t count) {
    return sides_[which].pinned.span().subspan(first * sizeof(float), count * sizeof(float));
  }
  static void add_piece(Side& side, std::span<std::byte> here, std::span<float> values) {
    side.backend.write(here, reinterpret_cast<std::byte*>(side.arrived.data()));
    const device::WeightedCopy arrived{side.arrived.data(), 1.0F};
    device::mix_row(side.backend.machine(), 1.0F, std::span(&arrived, 1), values.data(), values.size());
    side.backend.read(reinterpret_cast<const std::byte*>(values.data()), here);
  }

  Backend& device_;
  std::size_t most_;
  std::array<Side, 2> sides_;
  std::mutex ordering_;  // `follow` is called by two threads
};

}  // namespace hearsay

#pragma once
// Blocks of floats in archives, wherever a device has its memory.
#include <span>
#include <string_view>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/replica/device.hpp"

namespace hearsay {

/// As Archive::values, of a block on `device`.
inline void block_state(Archive& archive, std::string_view name, Device& device, std::span<float> block) {
  if (device.is_processor()) return archive.values(name, block);
  if (archive.looks()) {
    std::vector<float> here = fetched(device, block);
    return archive.values(name, std::span(here));
  }
  archive.bytes(
      name, block.size_bytes(),
      [&](std::span<std::byte> here) {
        device.fetch(block, here);
        device.wait();
      },
      [&](std::span<const std::byte> here) { device.put(here, block); });
}

}  // namespace hearsay

#pragma once
// A fast hash of bytes, the same on every machine.
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearsay {

/// XXH3, 64 bits. One read pass at the speed of the caches.
std::uint64_t xxh3(std::span<const std::byte> bytes);

}  // namespace hearsay

#pragma once
// A fast hash of bytes, the same on every machine.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hearsay {

/// XXH3, 64 bits. One read pass at the speed of the caches.
std::uint64_t xxh3(std::span<const std::byte> bytes);

/// 16 digits. Files have hashes as text: JSON readers round integers beyond 2⁵³.
std::string hexadecimal(std::uint64_t hash);

}  // namespace hearsay

#pragma once
// Byte buffers of the codec tests.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace hearsay::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::initializer_list<int> numbers) {
  Bytes bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

/// Small numbers mostly, so that some of it looks like an encoding.
inline Bytes random_bytes(Random& random, std::size_t length) {
  const std::uint64_t one_in = 1 + random.below(6);
  Bytes bytes(length);
  for (std::byte& b : bytes)
    b = static_cast<std::byte>(random.below(one_in) == 0 ? random.below(256) : random.below(3));
  return bytes;
}

/// One byte is another one.
inline Bytes damaged(Random& random, Bytes bytes) {
  if (!bytes.empty()) bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
  return bytes;
}

constexpr std::byte untouched{0xa5};

/// `write(room)` returns how many bytes it used of the room it got; what lies behind must not be touched. Empty if it
/// was.
template <class Write>
Bytes written(std::size_t room, Write write) {
  Bytes bytes(room + 16, untouched);
  const std::size_t used = write(std::span(bytes).first(room));
  const bool kept = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(room), bytes.end(),
                                [](std::byte b) { return b == untouched; });
  if (!kept || used > room) return {};
  bytes.resize(used);
  return bytes;
}

}  // namespace hearsay::test

#pragma once
// Bytes whose room is made without writing it: what grows is going to be written anyway, and a packet is long.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hearsay {

template <class T>
struct LeavesUnwritten : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = LeavesUnwritten<U>;
  };
  template <class U>
  void construct(U* memory) noexcept {
    ::new (static_cast<void*>(memory)) U;
  }
  template <class U, class... Arguments>
  void construct(U* memory, Arguments&&... arguments) {
    ::new (static_cast<void*>(memory)) U(std::forward<Arguments>(arguments)...);
  }
};

/// `resize` leaves new bytes as the memory has them.
using RawBytes = std::vector<std::byte, LeavesUnwritten<std::byte>>;

}  // namespace hearsay

#pragma once
// A position in a ring of bytes, which no packet is split by.
#include <cstddef>
#include <cstdint>

namespace hearsay {

/// A count of bytes that only rises, and where in the ring that is: index = count mod capacity, kept up by additions,
/// because small packets would feel the divisions.
class RingPosition {
 public:
  explicit RingPosition(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}

  std::uint64_t count() const { return count_; }
  std::size_t index() const { return index_; }
  /// Bytes from here to the end of the ring.
  std::size_t rest() const { return capacity_ - index_; }
  /// `bytes` ≤ rest().
  void advance(std::size_t bytes) {
    count_ += bytes;
    index_ = bytes < rest() ? index_ + bytes : 0;
  }
  /// Where `bytes`, no more than the capacity, begin that must lie in one piece: here, or at the start of the ring.
  RingPosition start_of(std::size_t bytes) const {
    RingPosition start = *this;
    if (bytes > rest()) start.advance(rest());
    return start;
  }

 private:
  std::size_t capacity_;
  std::uint64_t count_ = 0;
  std::size_t index_ = 0;
};

}  // namespace hearsay

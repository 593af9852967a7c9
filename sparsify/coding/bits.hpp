#pragma once
// Bits one after the other, the lowest of a byte first.
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearsay::coding {

/// Appends to bytes that are zeros and enough.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : out_(out) {}
  void put(std::uint64_t bits, unsigned count) {
    for (; count > 0; --count, bits >>= 1, ++at_)
      if ((bits & 1U) != 0) out_[at_ / 8] |= static_cast<std::byte>(1U << at_ % 8);
  }
  /// `ones` ones and a zero.
  void put_unary(std::uint64_t ones) {
    for (; ones > 0; --ones) put(1, 1);
    ++at_;
  }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

/// Reads any bytes: behind the last one there are zeros.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> in) : in_(in) {}
  std::uint64_t take(unsigned count) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < count; ++i) bits |= std::uint64_t{next()} << i;
    return bits;
  }
  /// Ones up to a zero, at most `most`.
  std::uint64_t take_unary(std::uint64_t most) {
    std::uint64_t ones = 0;
    while (ones < most && next() != 0) ++ones;
    return ones;
  }
  /// Whether more was read than there is.
  bool beyond() const { return at_ > 8 * in_.size(); }
  std::size_t bytes() const { return (at_ + 7) / 8; }

 private:
  unsigned next() {
    const std::size_t i = at_++;
    return i / 8 < in_.size() ? static_cast<unsigned>(in_[i / 8]) >> i % 8 & 1U : 0U;
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;
};

}  // namespace hearsay::coding

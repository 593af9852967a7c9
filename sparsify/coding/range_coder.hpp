#pragma once
// An adaptive binary range coder: a yes or no takes about as many bits as it is surprising.
//   a no keeps the lower part P(no) of the interval, a yes the rest; top bytes leave when they are settled
//   P(no) ← P(no) + (1 − P(no)) / 2^r after a no, P(no) − P(no) / 2^r after a yes, r rising to 6 with what was seen
// martin1979range; carries are held back as LZMA does it (7-zip's source, in the public domain).
// Deviates from the paper in: questions instead of symbols; the last bytes are chosen so that zeros end the stream, and
// these are left out.
// Cost: a multiplication and an addition a question, 1 to 3 bytes at the end of a stream. No heap.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace hearsay::coding {

constexpr unsigned together = 8;  // bits that are put at once: the interval has 24 or more

/// What is known of one question: P(no), of 16 bits.
class Chance {
 public:
  constexpr Chance() = default;
  /// In units of 2^−12, in [1, 4095].
  std::uint32_t of_no() const { return no_ >> 4; }
  void saw(bool yes) {
    const unsigned rate = std::min<unsigned>(6U, static_cast<unsigned>(std::bit_width(seen_ + 1U)));
    seen_ = static_cast<std::uint16_t>(seen_ + (rate < 6 ? 1 : 0));
    no_ = static_cast<std::uint16_t>(yes ? no_ - (no_ >> rate) : no_ + ((0x10000U - no_) >> rate));
    no_ = std::max<std::uint16_t>(no_, least);
  }

 private:
  static constexpr std::uint16_t least = 16;
  std::uint16_t no_ = 0x8000;
  std::uint16_t seen_ = 0;
};

/// Writes into bytes of somebody else's, and stops where they end.
class Encoder {
 public:
  explicit Encoder(std::span<std::byte> out) : out_(out) {}

  void put(Chance& chance, bool yes) {
    const std::uint32_t no = (range_ >> 12) * chance.of_no();
    low_ += yes ? no : 0;
    range_ = yes ? range_ - no : no;
    chance.saw(yes);
    settle();
  }
  /// The lower `count` bits of a number nobody can foretell; count ≤ 32.
  void put_bits(std::uint32_t bits, unsigned count) {
    while (count > 0) {
      const unsigned now = std::min(count, together);
      count -= now;
      range_ >>= now;
      low_ += std::uint64_t{bits >> count & ((1U << now) - 1)} * range_;
      settle();
    }
  }
  /// Ends the stream. Returns its bytes; more than there were if they were too few.
  std::size_t finish() {
    low_ = (low_ + range_ - 1) & ~std::uint64_t{0xffffff};
    shift(), shift();
    return used_;
  }
  bool full() const { return used_ > out_.size(); }

 private:
  void settle() {
    while (range_ < 1U << 24) {
      shift();
      range_ <<= 8;
    }
  }
  /// The top byte of `low_` leaves, unless a carry may still reach it.
  void shift() {
    constexpr std::uint64_t may_carry = 0xff000000;
    if (low_ < may_carry || low_ > std::numeric_limits<std::uint32_t>::max()) {
      const auto carry = static_cast<std::uint32_t>(low_ >> 32);
      if (begun_) emit(held_ + carry);
      for (; waiting_ > 0; --waiting_) emit(0xff + carry);
      held_ = static_cast<std::uint32_t>(low_ >> 24) & 0xff;
      begun_ = true;
    } else {
      ++waiting_;
    }
    low_ = low_ << 8 & 0xffffffff;
  }
  void emit(std::uint32_t byte) {
    if (at_ < out_.size()) out_[at_] = static_cast<std::byte>(byte);
    ++at_;
    if (byte % 256 != 0) used_ = at_;
  }

  std::span<std::byte> out_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;   // up to the last byte that is not 0
  std::uint64_t low_ = 0;  // a carry in bit 32
  std::uint32_t range_ = 0xffffffff;
  std::uint32_t held_ = 0;   // the last settled byte
  std::size_t waiting_ = 0;  // bytes 0xff behind it
  bool begun_ = false;
};

/// Reads any bytes: behind the last one there are zeros.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> in) : in_(in) {
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
  }

  bool take(Chance& chance) {
    const std::uint32_t no = (range_ >> 12) * chance.of_no();
    const bool yes = code_ >= no;
    code_ -= yes ? no : 0;
    range_ = yes ? range_ - no : no;
    chance.saw(yes);
    settle();
    return yes;
  }
  std::uint32_t take_bits(unsigned count) {
    std::uint32_t bits = 0;
    while (count > 0) {
      const unsigned now = std::min(count, together);
      count -= now;
      range_ >>= now;
      const std::uint32_t some = std::min(code_ / range_, (1U << now) - 1);
      code_ -= some * range_;
      bits = bits << now | some;
      settle();
    }
    return bits;
  }
  /// Whether all bytes have been looked at.
  bool read_all() const { return at_ >= in_.size(); }

 private:
  void settle() {
    while (range_ < 1U << 24) {
      code_ = code_ << 8 | next();
      range_ <<= 8;
    }
  }
  std::uint32_t next() {
    const std::size_t i = at_++;
    return i < in_.size() ? static_cast<std::uint32_t>(in_[i]) : 0;
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  std::uint32_t range_ = 0xffffffff;
  std::uint32_t code_ = 0;
};

}  // namespace hearsay::coding

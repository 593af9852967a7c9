// The gaps between positions: neighbours in a sparse message are close, and a small number takes few bytes.
//   gap[0] = index[0];  gap[i] = index[i] − index[i−1] − 1
//   first byte 0: gaps as LEB128, 7 bits a byte, low ones first, the high bit set on all bytes but a gap's last
//   first byte 1: gaps of less than 65535 in 16 bits; else 65535 and the gap in 32 bits, little endian
// Whichever of the two is shorter for this message.
// No paper; LEB128 is DWARF's.
// Deviates from the paper in: nothing.
// Cost: 1 + k … 1 + 5k bytes: about 1 byte a position at density 0.1, 2 below 0.01; two passes; no state.
#include <algorithm>

#include "base/loops/vector_code.hpp"
#include "sparsify/bytes.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

enum class Form : std::uint8_t { leb128 = 0, words = 1 };
constexpr std::uint32_t escape = 0xffff;  // the gap follows in 32 bits
constexpr std::size_t longest_leb128 = 5;

/// Calls `visit(gap)` in order.
template <class Visit>
void for_each_gap(std::span<const std::uint32_t> indices, Visit visit) {
  std::uint32_t next = 0;
  for (const std::uint32_t index : indices) {
    visit(index - next);
    next = index + 1;
  }
}

struct Choice {
  Form form;
  std::size_t bytes;  // the form's own byte included
};

/// Bytes of gaps in either form, in 32 bits: as wide as what is compared. Sums of comparisons, without jumps: lengths
/// are as hard to foretell as gaps.
struct Lengths {
  std::uint32_t leb128 = 0, words = 0;

  [[gnu::always_inline]] void add(std::uint32_t gap) {
    leb128 += 1U + (gap >> 7 != 0) + (gap >> 14 != 0) + (gap >> 21 != 0) + (gap >> 28 != 0);
    words += 2U + 4U * (gap >= escape);
  }
};

Choice shorter_form(std::span<const std::uint32_t> indices) {
  if (indices.empty()) return {Form::leb128, 1};
  Lengths first;
  first.add(indices.front());
  std::size_t as_leb128 = first.leb128, as_words = first.words;
  constexpr std::size_t piece = std::size_t{1} << 20;  // its lengths fit into 32 bits
  for (std::size_t begin = 1; begin < indices.size(); begin += piece) {
    const std::size_t end = std::min(begin + piece, indices.size());
    const Lengths sum = in_vector_code([&]() __attribute__((always_inline)) {
      Lengths lengths;
      for (std::size_t i = begin; i < end; ++i) lengths.add(indices[i] - indices[i - 1] - 1);
      return lengths;
    });
    as_leb128 += sum.leb128;
    as_words += sum.words;
  }
  return as_leb128 <= as_words ? Choice{Form::leb128, 1 + as_leb128} : Choice{Form::words, 1 + as_words};
}

std::size_t store_leb128(std::uint32_t gap, std::span<std::byte> out, std::size_t at) {
  if (gap < 0x4000 && at + 2 <= out.size()) {  // the rule: one byte or two, and no jump that asks which
    const std::uint32_t two = gap >> 7 != 0 ? 1 : 0;
    store(static_cast<std::uint16_t>((gap & 0x7f) | two << 7 | (gap >> 7) << 8), out, at);
    return at + 1 + two;
  }
  for (; gap >= 0x80; gap >>= 7) out[at++] = static_cast<std::byte>(gap | 0x80);
  out[at++] = static_cast<std::byte>(gap);
  return at;
}

std::size_t store_words(std::uint32_t gap, std::span<std::byte> out, std::size_t at) {
  store(static_cast<std::uint16_t>(std::min(gap, escape)), out, at);
  if (gap < escape) return at + 2;
  store(gap, out, at + 2);
  return at + 6;
}

/// Takes gaps off the front of bytes that may be anything.
class GapReader {
 public:
  GapReader(std::span<const std::byte> in, std::size_t count, std::size_t n) : in_(in), count_(count), n_(n) {
    const auto form = next_byte();
    if (form > static_cast<std::uint8_t>(Form::words)) refuse("form " + std::to_string(form));
    form_ = static_cast<Form>(form);
  }

  std::uint64_t next() { return form_ == Form::leb128 ? next_leb128() : next_words(); }
  std::size_t used() const { return at_; }
  [[noreturn]] void refuse(const std::string& why) const { refuse_positions("delta", count_, n_, why); }

 private:
  std::uint8_t next_byte() {
    if (at_ == in_.size()) refuse("only " + std::to_string(in_.size()) + " bytes");
    return static_cast<std::uint8_t>(in_[at_++]);
  }
  std::uint64_t next_leb128() {
    if (in_.size() - at_ >= 2) {
      const std::uint32_t two = load<std::uint16_t>(in_, at_), more = two >> 7 & 1;
      if ((two & 0x8080) != 0x8080) {  // the rule: one byte or two, and no jump that asks which
        at_ += 1 + more;
        return (two & 0x7f) | (two >> 1 & 0x3f80 & (0U - more));
      }
    }
    std::uint64_t gap = 0;
    for (std::size_t i = 0; i < longest_leb128; ++i) {
      const std::uint64_t byte = next_byte();
      gap |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return gap;
    }
    refuse("a gap of more than 32 bits");
  }
  std::uint64_t next_words() {
    const std::uint32_t gap = next_byte() | static_cast<std::uint32_t>(next_byte()) << 8;
    if (gap != escape) return gap;
    if (in_.size() - at_ < 4) refuse("only " + std::to_string(in_.size()) + " bytes");
    at_ += 4;
    return load<std::uint32_t>(in_, at_ - 4);
  }

  std::span<const std::byte> in_;
  std::size_t count_, n_;
  std::size_t at_ = 0;
  Form form_ = Form::leb128;
};

class Delta final : public PositionCoder {
 public:
  // Gaps and positions together are no more than n, so at most n / 2^7 gaps take a second byte, and so on.
  std::size_t bound(std::size_t k, std::size_t n) const override {
    std::size_t as_leb128 = k;
    for (std::size_t bits = 7; bits < 32; bits += 7) as_leb128 += std::min(k, n >> bits);
    const std::size_t as_words = 2 * k + 4 * std::min(k, n / escape);
    return 1 + std::min(as_leb128, as_words);
  }
  std::size_t bytes(std::span<const std::uint32_t> indices, std::size_t) const override {
    return shorter_form(indices).bytes;
  }

  std::size_t encode(std::span<const std::uint32_t> indices, std::size_t, std::span<std::byte> out) const override {
    const Choice choice = shorter_form(indices);
    require_room("delta codec", choice.bytes, out.size());
    store(choice.form, out, 0);
    std::size_t at = 1;
    for_each_gap(indices, [&](std::uint32_t gap) {
      at = choice.form == Form::leb128 ? store_leb128(gap, out, at) : store_words(gap, out, at);
    });
    return at;
  }

  std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::vector<std::uint32_t>& indices) const override {
    GapReader gaps(in, count, n);
    if (count > n) gaps.refuse("more values than there are");
    indices.resize(count);
    std::uint64_t next = 0;
    for (std::uint32_t& index : indices) {
      next += gaps.next();
      if (next >= n) gaps.refuse("position " + std::to_string(next) + " is outside");
      index = static_cast<std::uint32_t>(next++);
    }
    return gaps.used();
  }
};

std::unique_ptr<PositionCoder> make_delta(Config&) { return std::make_unique<Delta>(); }

}  // namespace

PositionCoderEntry delta_coder() {
  return {.name = "delta",
          .summary = "gaps between positions in 7-bit groups or 16-bit words, whichever is shorter for the message",
          .equation = "gap[i] = index[i] − index[i−1] − 1, as LEB128 or as 16 bits with escapes",
          .cost = "1 + k … 1 + 5k bytes, about 1 a position at density 0.1 and 2 below 0.01; two passes; no state",
          .citation = "none",
          .make = make_delta};
}

}  // namespace hearsay

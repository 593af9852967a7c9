// The gaps between positions by Golomb's rule, in about as many bits as they say: what an entropy coder needs.
//   gap[0] = index[0];  gap[i] = index[i] − index[i−1] − 1;  quotient = gap >> p, remainder = gap mod 2^p
//   p = argmin k (1 + p) + ((n − k) >> p):  2^p is near ln 2 times the mean gap
//   first byte p: the quotient in unary, the remainder in p bits (Rice's code)
//   first byte p + 32 w: a length of w bytes, then quotients and the three top bits of remainders through an adaptive
//                        coder (sparsify/coding/range_coder.hpp), which asks by the quotient before
// Whichever of the two is shorter for this message.
// golomb1966runs; martin1979range.
// Deviates from the papers in: the coder learns how long gaps are behind long and behind short ones.
// Cost: at most 1 byte and min over p of k (1 + p) + ((n − k) >> p) bits, about log2(n / k) + 2 a position; the entropy
// of the gaps to some 2 % where they have no order, less where they have; some 8 multiplications a position; no state.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "sparsify/bytes.hpp"
#include "sparsify/coding/bits.hpp"
#include "sparsify/coding/range_coder.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

using namespace coding;

constexpr unsigned most_bits = 31;
constexpr unsigned widths = 32;  // the first byte is p + 32 w

/// The parameter for k positions of n, and the bits that they then take at most.
struct Golomb {
  unsigned p = 0;
  std::uint64_t bits = 0;
};
Golomb best_for(std::uint64_t k, std::uint64_t n) {
  Golomb best{.p = 0, .bits = k > 0 ? n : 0};
  for (unsigned p = 1; p <= most_bits && k > 0; ++p) {
    const std::uint64_t bits = k * (1 + p) + ((n - k) >> p);
    if (bits < best.bits) best = {.p = p, .bits = bits};
  }
  return best;
}

/// Bytes of Rice's code, its first byte apart.
std::size_t rice_bytes(std::span<const std::uint32_t> indices, unsigned p) {
  std::uint64_t bits = 0;
  std::uint32_t next = 0;
  for (const std::uint32_t index : indices) bits += (index - next) >> p, next = index + 1;
  return bytes_of_bits(bits + indices.size() * (1 + p));
}

/// What is known of gaps.
class GapModel {
 public:
  explicit GapModel(unsigned p) : p_(p), top_(std::min(p, 3U)) {}

  void put(Encoder& to, std::uint32_t gap) {
    const std::uint32_t quotient = gap >> p_;
    auto& chances = quotients_[before_];
    for (std::uint32_t i = 0; i < quotient; ++i) to.put(chances[std::min(i, last)], true);
    to.put(chances[std::min(quotient, last)], false);
    before_ = std::min(quotient, 2U);
    auto& tree = tops_[quotient > 0 ? 1 : 0];
    std::uint32_t node = 1;
    for (unsigned bit = p_; bit > p_ - top_; --bit) {
      const bool one = (gap >> (bit - 1) & 1U) != 0;
      to.put(tree[node], one);
      node = 2 * node + (one ? 1 : 0);
    }
    to.put_bits(gap, p_ - top_);
  }

  /// Nothing for a gap of more than `most`.
  std::optional<std::uint64_t> take(Decoder& from, std::uint64_t most) {
    std::uint32_t quotient = 0;
    auto& chances = quotients_[before_];
    while (from.take(chances[std::min(quotient, last)])) {
      if (++quotient > most >> p_) return std::nullopt;
    }
    before_ = std::min(quotient, 2U);
    auto& tree = tops_[quotient > 0 ? 1 : 0];
    std::uint32_t node = 1;
    for (unsigned bit = 0; bit < top_; ++bit) node = 2 * node + (from.take(tree[node]) ? 1 : 0);
    const std::uint64_t remainder = std::uint64_t{node - (1U << top_)} << (p_ - top_) | from.take_bits(p_ - top_);
    const std::uint64_t gap = std::uint64_t{quotient} << p_ | remainder;
    return gap <= most ? std::optional(gap) : std::nullopt;
  }

 private:
  static constexpr std::uint32_t last = 7;
  unsigned p_, top_;
  std::uint32_t before_ = 0;  // the last quotient: 0, 1 or more
  std::array<std::array<Chance, last + 1>, 3> quotients_{};
  std::array<std::array<Chance, 8>, 2> tops_{};  // of remainders behind a quotient of 0, and of more
};

/// Bytes that say a length of at most `most`.
unsigned width_of(std::size_t most) { return static_cast<unsigned>(std::bit_width(most) + 7) / 8; }

/// The adaptive form behind its first byte, if it is shorter than `room`; else 0.
std::size_t put_adaptive(std::span<const std::uint32_t> indices, unsigned p, unsigned width,
                         std::span<std::byte> room) {
  if (room.size() <= width) return 0;
  Encoder to(room.subspan(width));
  GapModel model(p);
  std::uint32_t next = 0;
  for (const std::uint32_t index : indices) {
    model.put(to, index - next);
    next = index + 1;
    if (to.full()) return 0;
  }
  const std::size_t length = to.finish();
  if (length > room.size() - width) return 0;
  std::memcpy(room.data(), &length, width);
  return width + length;
}

void put_rice(std::span<const std::uint32_t> indices, unsigned p, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  BitWriter to(out);
  std::uint32_t next = 0;
  for (const std::uint32_t index : indices) {
    to.put_unary((index - next) >> p);
    to.put(index - next, p);
    next = index + 1;
  }
}

class GolombCoder final : public PositionCoder {
 public:
  std::size_t bound(std::size_t k, std::size_t n) const override { return 1 + bytes_of_bits(best_for(k, n).bits); }
  std::size_t bytes(std::span<const std::uint32_t> indices, std::size_t n) const override {
    std::vector<std::byte> out(bound(indices.size(), n));
    return encode(indices, n, out);
  }

  std::size_t encode(std::span<const std::uint32_t> indices, std::size_t n, std::span<std::byte> out) const override {
    const unsigned p = best_for(indices.size(), n).p;
    const std::size_t rice = rice_bytes(indices, p);
    require_room("golomb codec", 1, out.size());
    const auto body = out.subspan(1).first(std::min(rice, out.size() - 1));
    const unsigned width = width_of(rice);
    if (const std::size_t used = put_adaptive(indices, p, width, body); used > 0 && used < rice) {
      store(static_cast<std::uint8_t>(p + widths * width), out, 0);
      return 1 + used;
    }
    require_room("golomb codec", 1 + rice, out.size());
    store(static_cast<std::uint8_t>(p), out, 0);
    put_rice(indices, p, body);
    return 1 + rice;
  }

  std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::vector<std::uint32_t>& indices) const override {
    const auto refuse = [&](const std::string& why) { refuse_positions("golomb", count, n, why); };
    if (count > n) refuse("more values than there are");
    if (in.empty()) refuse("no bytes");
    const auto first = static_cast<unsigned>(in[0]);
    const unsigned p = first % widths, width = first / widths;
    indices.resize(count);
    return 1 +
           (width > 0 ? take_adaptive(in.subspan(1), p, width, n, indices) : take_rice(in.subspan(1), p, n, indices));
  }

 private:
  static std::size_t take_adaptive(std::span<const std::byte> in, unsigned p, unsigned width, std::size_t n,
                                   std::span<std::uint32_t> indices) {
    std::size_t length = 0;
    if (in.size() >= width) std::memcpy(&length, in.data(), width);
    if (in.size() < width || length > in.size() - width)
      refuse_positions("golomb", indices.size(), n, "only " + std::to_string(in.size()) + " bytes");
    Decoder from(in.subspan(width, length));
    GapModel model(p);
    std::uint64_t next = 0;
    for (std::uint32_t& index : indices) {
      const auto gap = next < n ? model.take(from, n - 1 - next) : std::nullopt;
      if (!gap) refuse_positions("golomb", indices.size(), n, "a position is outside");
      next += *gap;
      index = static_cast<std::uint32_t>(next++);
    }
    if (!from.read_all()) refuse_positions("golomb", indices.size(), n, "more bytes than positions need");
    return width + length;
  }

  static std::size_t take_rice(std::span<const std::byte> in, unsigned p, std::size_t n,
                               std::span<std::uint32_t> indices) {
    BitReader from(in);
    std::uint64_t next = 0;
    for (std::uint32_t& index : indices) {
      next += from.take_unary((n >> p) + 1) << p;
      next += from.take(p);
      if (from.beyond()) refuse_positions("golomb", indices.size(), n, "only " + std::to_string(in.size()) + " bytes");
      if (next >= n) refuse_positions("golomb", indices.size(), n, "a position is outside");
      index = static_cast<std::uint32_t>(next++);
    }
    return from.bytes();
  }
};

std::unique_ptr<PositionCoder> make_golomb(Config&) { return std::make_unique<GolombCoder>(); }

}  // namespace

PositionCoderEntry golomb_coder() {
  return {.name = "golomb",
          .summary = "gaps between positions by Golomb's rule, through an adaptive range coder",
          .equation =
              "gap[i] = index[i] − index[i−1] − 1 as gap >> p and gap mod 2^p; p = argmin k (1 + p) + ((n − k) "
              ">> p)",
          .cost =
              "about log2(n / k) + 1.6 bits a position, at most 1 byte and min over p of k (1 + p) + ((n − k) >> p) "
              "bits; some 8 multiplications a position; no state",
          .citation = "golomb1966runs; martin1979range",
          .make = make_golomb};
}

}  // namespace hearsay

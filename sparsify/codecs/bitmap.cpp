// One bit for every value of the segment: 1 if it travels.
//   bit i mod 8 of byte ⌊i/8⌋ = 1 iff i is among the indices; the bits from n on are 0
// No paper.
// Deviates from the paper in: nothing.
// Cost: ⌈n/8⌉ bytes, whatever k: shorter than `plain` from density 1/32 on, than `delta` from about 1/8; one pass; no
// state.
#include <algorithm>
#include <bit>
#include <span>

#include "base/loops/vector_code.hpp"
#include "sparsify/bytes.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::size_t spare = 2;  // places past the last position that are written too

/// Writes the positions of the bits that are 1, a word at a time, and returns how many; stops once they are more than
/// `most`.
[[gnu::always_inline]] inline std::size_t find_positions(std::span<const std::byte> map, std::size_t most,
                                                         std::span<std::uint32_t> positions) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  std::size_t found = 0;
  const auto take = [&](std::uint64_t bits, std::size_t at) __attribute__((always_inline)) {
    std::uint32_t* next = positions.data() + found;
    found += static_cast<std::size_t>(std::popcount(bits));
    if (found > most) return false;
    const auto put = [&] {
      *next++ = static_cast<std::uint32_t>(8 * at) + static_cast<std::uint32_t>(std::countr_zero(bits));
      bits &= bits - 1;
    };
    put(), put();  // whether they are there or not: that costs less than a wrong guess at how many there are
    while (bits != 0) put();
    return true;
  };
  const std::size_t whole = map.size() - map.size() % word;
  for (std::size_t at = 0; at < whole; at += word) {
    if (!take(load<std::uint64_t>(map, at), at)) return found;
  }
  std::uint64_t rest = 0;
  std::ranges::copy(map.subspan(whole), std::as_writable_bytes(std::span(&rest, 1)).begin());
  take(rest, whole);
  return found;
}

class Bitmap final : public PositionCoder {
 public:
  std::size_t bound(std::size_t, std::size_t n) const override { return bytes_of_bits(n); }
  std::size_t bytes(std::span<const std::uint32_t>, std::size_t n) const override { return bytes_of_bits(n); }

  std::size_t encode(std::span<const std::uint32_t> indices, std::size_t n, std::span<std::byte> out) const override {
    require_room("bitmap codec", bytes_of_bits(n), out.size());
    const auto map = out.first(bytes_of_bits(n));
    std::ranges::fill(map, std::byte{0});
    for (const std::uint32_t index : indices) map[index / 8] |= std::byte{1} << (index % 8);
    return map.size();
  }

  std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::vector<std::uint32_t>& indices) const override {
    if (count > n) refuse_positions("bitmap", count, n, "more values than there are");
    if (in.size() < bytes_of_bits(n))
      refuse_positions("bitmap", count, n, "only " + std::to_string(in.size()) + " bytes");
    indices.resize(count + spare);
    const std::size_t found = in_vector_code([&]() __attribute__((always_inline)) {
      return find_positions(in.first(bytes_of_bits(n)), count, indices);
    });
    if (found > count) refuse_positions("bitmap", count, n, "more positions than values");
    if (found < count) refuse_positions("bitmap", count, n, "only " + std::to_string(found) + " positions");
    indices.resize(count);
    if (count > 0 && indices.back() >= n)
      refuse_positions("bitmap", count, n, "position " + std::to_string(indices.back()) + " is outside");
    return bytes_of_bits(n);
  }
};

std::unique_ptr<PositionCoder> make_bitmap(Config&) { return std::make_unique<Bitmap>(); }

}  // namespace

PositionCoderEntry bitmap_coder() {
  return {.name = "bitmap",
          .summary = "one bit for every value of the segment",
          .equation = "bit i = 1 iff i is among the indices",
          .cost = "⌈n/8⌉ bytes, whatever k; one pass; no state",
          .citation = "none",
          .make = make_bitmap};
}

}  // namespace hearsay

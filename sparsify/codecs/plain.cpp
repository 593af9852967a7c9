// Positions as 32-bit numbers, little endian.
//   k ≤ n/2:  index[0] … index[k−1]
//   k > n/2:  the n − k positions left out
// The shorter of the two lists travels, so positions never outweigh half of the segment. The receiver knows k and n and
// so which list it is.
// No paper.
// Deviates from the paper in: nothing.
// Cost: 4·min(k, n − k) bytes; one pass; no state.
#include <algorithm>

#include "sparsify/bytes.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::size_t word = 4;  // bytes of a position

/// How many positions are listed.
std::size_t listed(std::size_t k, std::size_t n) { return std::min(k, n - k); }

/// Reads `listed_count` positions; they must rise and stay below n.
void read_positions(std::span<const std::byte> in, std::size_t listed_count, std::size_t count, std::size_t n,
                    std::vector<std::uint32_t>& positions) {
  positions.resize(listed_count);
  for (std::size_t i = 0; i < listed_count; ++i) {
    positions[i] = load<std::uint32_t>(in, word * i);
    if (positions[i] >= n)
      refuse_positions("plain", count, n, "position " + std::to_string(positions[i]) + " is outside");
    if (i > 0 && positions[i] <= positions[i - 1])
      refuse_positions("plain", count, n,
                       "position " + std::to_string(positions[i]) + " after " + std::to_string(positions[i - 1]));
  }
}

class Plain final : public PositionCoder {
 public:
  std::size_t bound(std::size_t k, std::size_t n) const override { return word * std::min(k, n / 2); }
  std::size_t bytes(std::span<const std::uint32_t> indices, std::size_t n) const override {
    return word * listed(indices.size(), n);
  }

  std::size_t encode(std::span<const std::uint32_t> indices, std::size_t n, std::span<std::byte> out) const override {
    const std::size_t k = indices.size();
    require_room("plain codec", bytes(indices, n), out.size());
    if (listed(k, n) == k) {
      store_all(indices, out);
    } else {
      std::vector<std::uint32_t> left_out;
      complement(indices, n, left_out);
      store_all(std::span<const std::uint32_t>(left_out), out);
    }
    return bytes(indices, n);
  }

  std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::vector<std::uint32_t>& indices) const override {
    if (count > n) refuse_positions("plain", count, n, "more values than there are");
    const std::size_t used = word * listed(count, n);
    if (in.size() < used) refuse_positions("plain", count, n, "only " + std::to_string(in.size()) + " bytes");
    if (listed(count, n) == count) {
      read_positions(in, count, count, n, indices);
    } else {
      std::vector<std::uint32_t> left_out;
      read_positions(in, n - count, count, n, left_out);
      complement(left_out, n, indices);
    }
    return used;
  }
};

std::unique_ptr<PositionCoder> make_plain(Config&) { return std::make_unique<Plain>(); }

}  // namespace

PositionCoderEntry plain_coder() {
  return {.name = "plain",
          .summary = "32-bit positions as they are, or those left out where they are fewer",
          .equation = "k ≤ n/2: k positions; k > n/2: the n − k positions left out",
          .cost = "4·min(k, n − k) bytes; one pass; no state",
          .citation = "none",
          .make = make_plain};
}

}  // namespace hearsay

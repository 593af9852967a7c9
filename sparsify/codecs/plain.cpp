// Values as they are, positions as 32-bit numbers; all little endian.
//   k ≤ n/2:  value[0] … value[k−1]  index[0] … index[k−1]            8k bytes
//   k > n/2:  value[0] … value[k−1]  the n − k positions left out      4n bytes
// The shorter of the two lists of positions travels, so a message is never longer than the whole segment, and with
// k = n there are no positions at all. The receiver knows k and n and so which list it is.
// No paper.
// Deviates from the paper in: nothing.
// Cost: payload 4k bytes, index 4·min(k, n − k) bytes; one pass; no state. Exact: every bit of a value survives.
#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/base/error.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

static_assert(std::endian::native == std::endian::little, "plain.cpp copies words as they lie in memory");
constexpr std::size_t word = 4;  // bytes of a value and of a position

/// How many positions are listed.
std::size_t listed(std::size_t k, std::size_t n) { return std::min(k, n - k); }

template <class T>
std::byte* put(std::span<const T> words, std::byte* out) {
  if (!words.empty()) std::memcpy(out, words.data(), words.size_bytes());
  return out + words.size_bytes();
}

void check_arguments(std::span<const std::uint32_t> indices, std::span<const float> values, std::size_t n,
                     std::span<std::byte> out) {
  const std::size_t k = indices.size();
  if (values.size() == k && k <= n && out.size() >= word * (k + listed(k, n))) return;
  throw std::logic_error("plain codec: " + std::to_string(k) + " positions, " + std::to_string(values.size()) +
                         " values of " + std::to_string(n) + " into " + std::to_string(out.size()) + " bytes");
}

[[noreturn]] void refuse(const std::string& what, std::size_t count, std::size_t n) {
  throw CommunicationError("plain codec, " + std::to_string(count) + " values of " + std::to_string(n) + ": " + what +
                           ". The packet is damaged, or sender and receiver run different configurations.");
}

/// Reads `count` positions; they must rise and stay below n.
void read_positions(std::span<const std::byte> in, std::size_t count, std::size_t n,
                    std::vector<std::uint32_t>& positions) {
  positions.resize(count);
  if (count > 0) std::memcpy(positions.data(), in.data(), word * count);
  for (std::size_t i = 0; i < count; ++i) {
    if (positions[i] >= n) refuse("position " + std::to_string(positions[i]) + " is outside", count, n);
    if (i > 0 && positions[i] <= positions[i - 1])
      refuse("position " + std::to_string(positions[i]) + " after " + std::to_string(positions[i - 1]), count, n);
  }
}

/// The positions below n that are not in `positions`; both ascending.
void complement(std::span<const std::uint32_t> positions, std::size_t n, std::vector<std::uint32_t>& others) {
  others.clear();
  others.reserve(n - positions.size());
  std::uint32_t next = 0;
  for (const std::uint32_t position : positions) {
    while (next < position) others.push_back(next++);
    next = position + 1;
  }
  while (next < n) others.push_back(next++);
}

class Plain final : public Codec {
 public:
  std::size_t bound(std::size_t count, std::size_t n) const override { return word * std::min(2 * count, n); }

  EncodedSize encode(std::span<const std::uint32_t> indices, std::span<const float> values, std::size_t n,
                     std::span<std::byte> out) const override {
    check_arguments(indices, values, n, out);
    const std::size_t k = indices.size();
    std::byte* const behind_values = put(values, out.data());
    if (listed(k, n) == k) {
      put(indices, behind_values);
    } else {
      std::vector<std::uint32_t> left_out;
      complement(indices, n, left_out);
      put(std::span<const std::uint32_t>(left_out), behind_values);
    }
    return {.payload_bytes = word * k, .index_bytes = word * listed(k, n)};
  }

  void decode(std::span<const std::byte> in, std::size_t count, std::size_t n, std::vector<std::uint32_t>& indices,
              std::vector<float>& values) const override {
    if (count > n) refuse("more values than there are", count, n);
    if (in.size() != word * (count + listed(count, n))) refuse(std::to_string(in.size()) + " bytes", count, n);
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), in.data(), word * count);
    const auto positions = in.subspan(word * count);
    if (listed(count, n) == count) {
      read_positions(positions, count, n, indices);
    } else {
      std::vector<std::uint32_t> left_out;
      read_positions(positions, n - count, n, left_out);
      complement(left_out, n, indices);
    }
  }
};

std::unique_ptr<Codec> make(Config&) { return std::make_unique<Plain>(); }

}  // namespace

CodecEntry plain_codec() {
  return {.name = "plain",
          .summary = "32-bit values and 32-bit positions, as they are; never longer than the whole segment",
          .equation = "k ≤ n/2: k values, k positions; k > n/2: k values, the n − k positions left out",
          .cost = "payload 4k bytes, index 4·min(k, n − k) bytes; one pass; no state",
          .citation = "none",
          .make = make};
}

}  // namespace hearsay

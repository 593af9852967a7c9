// 4-bit floats without digits (E3M0): a sign, 3 bits of exponent, and one scale a group.
//   top = max |v|, rounded up to 12 significant bits
//   q(v) = sign(v) · top · 2^−k, k = 0 … 6, or 0: the nearest of them
// As Streaming DiLoCo sends what an outer step is made of (douillard2025streaming).
// Deviates from the paper in: exponents count from the group's largest value.
// Error: |v − q(v)| ≤ |v| / 3, but top / 128 below that. So the largest values arrive as well as the others, and what
// is left over shrinks by two thirds with every send.
// Cost: half a byte a value and 4 bytes a group; 2 passes; no state.
#include "base/loops/vector_code.hpp"
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr unsigned width = 4;

std::array<float, 1U << width> fp4_levels(float top) {
  std::array<float, 1U << width> levels{};
  for (unsigned code = 0; code < levels.size(); ++code) levels[code] = from_fp4(top, code);
  return levels;
}

/// Two values a byte.
[[gnu::always_inline]] inline void write_pairs(std::span<const float> values, float top, std::byte* to) {
  for (std::size_t i = 0; i < values.size() / 2; ++i)
    to[i] = static_cast<std::byte>(to_fp4(values[2 * i], top) | to_fp4(values[2 * i + 1], top) << width);
}

class Fp4 final : public Quantiser {
 public:
  bool exact() const override { return false; }
  double error_bound(std::span<const float> group, float value) const override {
    return std::max(std::abs(static_cast<double>(value)) / 3, (1 + 0x1p-11) * largest_magnitude(group) / 128);
  }
  // Drift correction on label-sorted MNIST, strength c: a packet an iteration trains with c = 0.5; an adaptive trigger
  // trains with 0.25 and diverges with 0.5. So c / 2, c being 1/2.
  double sends_to_settle() const override { return 2.0; }
  GroupCode group_code() const override { return GroupCode::fp4; }
  std::size_t bound(std::size_t count, std::size_t groups) const override {
    return sizeof(float) * groups + bytes_of_bits(width * count);
  }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser fp4", bound(values.size(), group_ends.size()), out.size());
    const auto bits = out.subspan(sizeof(float) * group_ends.size(), bytes_of_bits(width * values.size()));
    std::ranges::fill(bits, std::byte{0});
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float top = fp4_top(largest_magnitude(values.subspan(first, end - first)));
      store(top, out, sizeof(float) * group);
      if (top == 0.0F) return;
      const auto code = [&](std::size_t i) { return to_fp4(values[i], top); };
      // A byte may have values of two groups.
      const std::size_t begin = std::min(end, first + first % 2), pairs = (end - begin) / 2;
      pack<width>(bits, first, begin, code);
      const auto whole = values.subspan(begin, 2 * pairs);
      std::byte* const to = bits.data() + begin / 2;
      in_vector_code([=]() __attribute__((always_inline)) { write_pairs(whole, top, to); });
      pack<width>(bits, begin + 2 * pairs, end, code);
    });
    return bound(values.size(), group_ends.size());
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("fp4", values.size(), bound(values.size(), group_ends.size()), in.size());
    const auto bits = in.subspan(sizeof(float) * group_ends.size());
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float top = load_level(in, sizeof(float) * group, "fp4", values.size());
      unpack<width>(bits, first, end, fp4_levels(top), values);
    });
  }
};

std::unique_ptr<Quantiser> make_fp4(Config&) { return std::make_unique<Fp4>(); }

}  // namespace

QuantiserEntry fp4_quantiser() {
  return {.name = "fp4",
          .summary = "4-bit floats without digits (E3M0), times one scale a group",
          .equation = "q(v) = sign(v) · the nearest of 0 and max |v| · 2^−k, k = 0 … 6",
          .cost = "half a byte a value, 4 bytes a group; error ≤ |v| / 3, but max |v| / 128; 2 passes; no state",
          .citation = "douillard2025streaming",
          .make = make_fp4};
}

}  // namespace hearsay

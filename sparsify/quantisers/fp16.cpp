// Half-precision floats (IEEE 754 binary16), little endian.
//   q(v) = the nearest binary16 number, ties to even; ±65504, the largest one, from there on
// No paper.
// Deviates from the paper in: nothing.
// Error: |v − q(v)| ≤ 2^−11 |v| for 2^−14 ≤ |v| ≤ 65504; ≤ 2^−25 below; |v| − 65504 above. q(q(v)) = q(v).
// Cost: 2 bytes a value; one pass; no state.
#include <bit>

#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::uint32_t float_bias_minus_half_bias = 112;
constexpr std::uint32_t smallest_normal_half = 0x38800000;  // 2^−14 as fp32 bits
constexpr std::uint32_t rounds_to_infinity = 0x477ff000;    // 65520 as fp32 bits
constexpr std::uint16_t largest_half = 0x7bff;              // 65504
constexpr std::uint16_t half_infinity = 0x7c00;

std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= rounds_to_infinity) return sign | largest_half;
  if (magnitude < smallest_normal_half) {
    // Half's subnormals are multiples of 2^−24, as are floats from 0.5 to 1: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1);  // to nearest of the 10 digits that stay, ties to even
  return static_cast<std::uint16_t>(sign | ((magnitude >> 13) - (float_bias_minus_half_bias << 10)));
}

/// `half` is finite.
float to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7fff;
  const bool subnormal = magnitude < 0x0400;
  const std::uint32_t bits = subnormal ? std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F)
                                       : (magnitude << 13) + (float_bias_minus_half_bias << 23);
  return std::bit_cast<float>(sign | bits);
}

class Fp16 final : public Quantiser {
 public:
  bool exact() const override { return false; }
  std::size_t bytes(std::size_t count, std::size_t) const override { return sizeof(std::uint16_t) * count; }

  void encode(std::span<const float> values, std::span<const std::size_t> group_ends,
              std::span<std::byte> out) const override {
    require_room("quantiser fp16", bytes(values.size(), group_ends.size()), out.size());
    for (std::size_t i = 0; i < values.size(); ++i) store(to_half(values[i]), out, 2 * i);
  }
  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("fp16", values.size(), bytes(values.size(), group_ends.size()), in.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto half = load<std::uint16_t>(in, 2 * i);
      if ((half & half_infinity) == half_infinity)
        refuse_values("fp16", values.size(), "value " + std::to_string(i) + " is not finite");
      values[i] = to_float(half);
    }
  }
};

std::unique_ptr<Quantiser> make(Config&) { return std::make_unique<Fp16>(); }

}  // namespace

QuantiserEntry fp16_quantiser() {
  return {.name = "fp16",
          .summary = "half-precision floats, clamped to ±65504",
          .equation = "q(v) = the nearest binary16 number, ties to even",
          .cost = "2 bytes a value; relative error ≤ 2^−11 from 6.1e-5 to 65504; one pass; no state",
          .citation = "none: IEEE 754 binary16",
          .make = make};
}

}  // namespace hearsay

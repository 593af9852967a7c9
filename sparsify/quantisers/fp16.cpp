// Half-precision floats (IEEE 754 binary16), little endian.
//   q(v) = the nearest binary16 number, ties to even; ±65504, the largest one, from there on
// No paper.
// Deviates from the paper in: nothing.
// Error: |v − q(v)| ≤ 2^−11 |v| for 2^−14 ≤ |v| ≤ 65504; ≤ 2^−25 below; |v| − 65504 above. q(q(v)) = q(v).
// Cost: 2 bytes a value; one pass; no state.
#include <algorithm>
#include <bit>
#include <cstring>

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

/// `half` is finite. Both forms are computed, so that loops become vector code.
float to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const std::uint32_t normal = magnitude + (float_bias_minus_half_bias << 23);
  // A subnormal's digits as those of a number from 2^−14 on, less 2^−14.
  const float subnormal =
      std::bit_cast<float>(magnitude | smallest_normal_half) - std::bit_cast<float>(smallest_normal_half);
  const std::uint32_t is_normal = 0U - static_cast<std::uint32_t>(magnitude >= 1U << 23);
  return std::bit_cast<float>(sign | (normal & is_normal) | (std::bit_cast<std::uint32_t>(subnormal) & ~is_normal));
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
    if (values.empty()) return;
    // In two loops without a way out, of which compilers make vector code.
    std::uint16_t largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max<std::uint16_t>(largest, half_at(in.data(), i) & 0x7fff);
    if (largest >= half_infinity) refuse_infinity(in, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(half_at(in.data(), i));
  }

 private:
  static std::uint16_t half_at(const std::byte* bytes, std::size_t i) {
    std::uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof half);
    return half;
  }
  [[noreturn]] static void refuse_infinity(std::span<const std::byte> in, std::size_t count) {
    std::size_t i = 0;
    while ((half_at(in.data(), i) & half_infinity) != half_infinity) ++i;
    refuse_values("fp16", count, "value " + std::to_string(i) + " is not finite");
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

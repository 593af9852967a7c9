#pragma once
// How single values and levels are rounded: the arithmetic that quantisers share, of the processor and of a GPU.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "sparsify/magnitude.hpp"

namespace hearsay {

// Levels have 12 significant bits of fp32's 24. With the rest, remainders v − q(v) of values of like size and sums over
// ranks have room for all their digits: rounding does not eat what the residual is to keep, and with small integers
// nothing is lost at all.

/// The digits of a double that are not among those 12.
constexpr int digits_dropped = 53 - 12;

/// x ≥ 0, no subnormal double, rounded to 12 significant bits, ties to even; finite.
constexpr float level(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t half = (std::uint64_t{1} << (digits_dropped - 1)) - 1 + (bits >> digits_dropped & 1);
  const auto rounded = std::bit_cast<double>((bits + half) >> digits_dropped << digits_dropped);
  return static_cast<float>(std::min(rounded, 0x1.ffep127));
}
/// x ≥ 0, no subnormal double and well below fp32's largest, rounded up to 12 significant bits.
constexpr float level_above(double x) {
  const std::uint64_t least = (std::uint64_t{1} << digits_dropped) - 1;
  const std::uint64_t digits = (std::bit_cast<std::uint64_t>(x) + least) >> digits_dropped;
  const auto nearest = static_cast<float>(std::bit_cast<double>(digits << digits_dropped));  // rounds below 2^−126 only
  return nearest < x ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) + 1) : nearest;
}

// fp16: IEEE 754 binary16.
constexpr std::uint32_t float_bias_minus_half_bias = 112;
constexpr std::uint32_t smallest_normal_half = 0x38800000;  // 2^−14 as fp32 bits
constexpr std::uint32_t rounds_to_infinity = 0x477ff000;    // 65520 as fp32 bits; just below rounds to 65504
constexpr std::uint16_t half_infinity = 0x7c00;

/// Both forms are computed, so that loops become vector code.
inline std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = std::min(bits & 0x7fffffff, rounds_to_infinity - 1);
  // To nearest of the 10 digits that stay, ties to even.
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  const std::uint32_t normal = (rounded >> 13) - (float_bias_minus_half_bias << 10);
  // Half's subnormals are multiples of 2^−24, as are floats from 0.5 to 1: the addition rounds.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t is_normal = 0U - static_cast<std::uint32_t>(magnitude >= smallest_normal_half);
  return static_cast<std::uint16_t>(sign | (normal & is_normal) | (subnormal & ~is_normal));
}

/// `half` is finite. Both forms are computed, so that loops become vector code.
inline float to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const std::uint32_t normal = magnitude + (float_bias_minus_half_bias << 23);
  // A subnormal's digits as those of a number from 2^−14 on, less 2^−14.
  const float subnormal =
      std::bit_cast<float>(magnitude | smallest_normal_half) - std::bit_cast<float>(smallest_normal_half);
  const std::uint32_t is_normal = 0U - static_cast<std::uint32_t>(magnitude >= 1U << 23);
  return std::bit_cast<float>(sign | (normal & is_normal) | (std::bit_cast<std::uint32_t>(subnormal) & ~is_normal));
}
constexpr bool is_finite_half(std::uint16_t half) { return (half & half_infinity) != half_infinity; }

// int8: integers from −127 to 127 and a scale.
/// The scale of a group whose largest magnitude is `most`.
constexpr float int8_scale(float most) { return level_above(static_cast<double>(most) / 127.0); }
constexpr std::int8_t to_int8(float value, float scale) {
  constexpr float rounds = 0x1.8p23F;  // floats of this size are integers
  const float number = scale > 0.0F ? std::clamp(value / scale, -127.0F, 127.0F) : 0.0F;
  return static_cast<std::int8_t>((number + rounds) - rounds);
}
/// scale · number; beyond fp32's largest, which only the group's own maximum can be by rounding, that one.
constexpr float from_int8(float scale, std::int8_t number) {
  const double product = static_cast<double>(scale) * number;
  constexpr double limit = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(product, -limit, limit));
}

// fp4: a sign and three bits of exponent, below the group's largest magnitude.
constexpr unsigned fp4_minus = 8;  // the sign's bit
constexpr int fp4_code_of_top = 7;
constexpr int exponent_of_one = 127;  // in fp32
constexpr float fp4_top(float most) { return level_above(std::min(most, 0x1.ffep127F)); }
/// Between levels 2^−k and 2^−k−1 of the top, 3/4 · 2^−k is the middle: from there on 4/3 of the value has exponent −k.
[[gnu::always_inline]] constexpr unsigned to_fp4(float value, float top) {
  if (top == 0.0F) return 0;
  const float part = float_of(magnitude_bits(value)) / top;
  const int exponent = static_cast<int>(std::bit_cast<std::uint32_t>(part * (4.0F / 3.0F)) >> 23);
  const int least = part >= 0x1p-7F ? 1 : 0;
  const int code = std::clamp(exponent - exponent_of_one + fp4_code_of_top, least, fp4_code_of_top);
  return static_cast<unsigned>(code) | (value < 0.0F ? fp4_minus : 0U);
}
constexpr float from_fp4(float top, unsigned code) {
  const unsigned power = code & (fp4_minus - 1);
  if (power == 0) return 0.0F;
  const int exponent = exponent_of_one + static_cast<int>(power) - fp4_code_of_top;
  const float magnitude = top * float_of(exponent << 23);
  return (code & fp4_minus) != 0 ? -magnitude : magnitude;
}

// two_bit: which of the two levels is nearer.
constexpr bool nearer_high(float magnitude, double low, double high) { return 2.0 * magnitude > low + high; }

}  // namespace hearsay

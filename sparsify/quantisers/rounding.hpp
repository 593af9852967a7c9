#pragma once
// How single values and levels are rounded: the arithmetic that quantisers share.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hearsay {

// Levels have 12 significant bits of fp32's 24. With the rest, remainders v − q(v) of values of like size and sums over
// ranks have room for all their digits: rounding does not eat what the residual is to keep, and with small integers
// nothing is lost at all.
constexpr double level_digits = 4096.0;

/// x ≥ 0 rounded to 12 significant bits; finite.
inline float level(double x) {
  int exponent = 0;
  const double digits = std::nearbyint(level_digits * std::frexp(x, &exponent));
  return static_cast<float>(std::min(std::ldexp(digits / level_digits, exponent), 0x1.ffep127));
}
/// x ≥ 0, well below fp32's largest, rounded up to 12 significant bits.
inline float level_above(double x) {
  int exponent = 0;
  const double digits = std::ceil(level_digits * std::frexp(x, &exponent));
  const auto nearest = static_cast<float>(std::ldexp(digits / level_digits, exponent));  // rounds below 2^−126 only
  return nearest < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
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
inline float int8_scale(float most) { return level_above(static_cast<double>(most) / 127.0); }
inline std::int8_t to_int8(float value, float scale) {
  const float number = scale > 0.0F ? std::nearbyint(value / scale) : 0.0F;
  return static_cast<std::int8_t>(std::clamp(number, -127.0F, 127.0F));
}
/// scale · number; beyond fp32's largest, which only the group's own maximum can be by rounding, that one.
inline float from_int8(float scale, std::int8_t number) {
  const double product = static_cast<double>(scale) * number;
  constexpr double limit = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(product, -limit, limit));
}

// two_bit: which of the two levels is nearer.
constexpr bool nearer_high(float magnitude, double low, double high) { return 2.0 * magnitude > low + high; }

}  // namespace hearsay

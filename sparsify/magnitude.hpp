#pragma once
// |x| as an integer: the bits of a float without its sign order magnitudes as integers do, NaN above ∞ above all else.
#include <bit>
#include <cstdint>

namespace hearsay {

/// The bits of |x|, in [0, 2³¹); signed because baseline vector units compare signed integers only.
constexpr std::int32_t magnitude_bits(float x) { return std::bit_cast<std::int32_t>(x) & 0x7fffffff; }

/// The float that has these bits.
constexpr float float_of(std::int32_t bits) { return std::bit_cast<float>(bits); }

/// |x| is infinite or not a number from here on.
constexpr std::int32_t infinity_bits = 0x7f800000;

}  // namespace hearsay

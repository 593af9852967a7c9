#pragma once
#include <bit>

namespace hearsay {

inline constexpr double bytes_per_word = 4.0;

/// ⌈log2 P⌉.
inline double rounds(int ranks) { return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks) - 1U)); }

}  // namespace hearsay

#pragma once
// The two numbers that everything is about.
#include <cstdint>

namespace hearsay {

using Iteration = std::int64_t;   ///< k = 0, 1, …
using SegmentId = std::uint32_t;  ///< index into the layout's segments

}  // namespace hearsay

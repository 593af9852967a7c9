#pragma once
// The numbers that everything is about.
#include <cstdint>

namespace hearsay {

using Iteration = std::int64_t;   ///< k = 0, 1, …
using SegmentId = std::uint32_t;  ///< index into the layout's segments

/// Ranks of a job, at most, for whoever reads their number in a file or on a command line: a ring of so many takes
/// some 450 MB and seconds to build. Other graphs take some 300 bytes an edge, and eigenvalues, where somebody asks for
/// them, far longer.
inline constexpr int most_ranks = 1'000'000;

}  // namespace hearsay

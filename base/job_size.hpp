#pragma once
// How large a job can be, for whoever reads it in a file or on a command line.

namespace hearsay {

/// Ranks of a job, at most: a graph of as many takes some 450 MB and seconds.
inline constexpr int most_ranks = 1'000'000;

}  // namespace hearsay

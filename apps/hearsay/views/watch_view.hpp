#pragma once
// A run that is watched, as text.
#include <cstddef>
#include <deque>
#include <string>

#include "apps/hearsay/views/watched_run.hpp"

namespace hearsay {

/// `values` as at most `width` block characters ▁…█ from their least to their largest, each the mean of its share;
/// numbers that are not finite show as blanks.
std::string sparkline(const std::deque<double>& values, std::size_t width);

/// The whole view, at most `width` columns: a line on the run, one a rank, the loss, the busiest edges, the stragglers.
/// A straggler is a rank whose newest record is more than `straggles` of the fastest rank's iterations behind it.
std::string watch_view(const WatchedRun& run, std::size_t width);

inline constexpr double straggles = 0.05;
inline constexpr std::size_t shown_ranks = 32;
inline constexpr std::size_t shown_edges = 8;

}  // namespace hearsay

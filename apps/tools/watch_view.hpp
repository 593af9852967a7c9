#pragma once
// A run that is watched, as text.
#include <cstddef>
#include <deque>
#include <string>

#include "apps/tools/watched_run.hpp"

namespace hearsay {

/// `values` as at most `width` block characters ▁…█ from their least to their largest, each the mean of its share;
/// numbers that are not finite show as blanks.
std::string sparkline(const std::deque<double>& values, std::size_t width);

/// The whole view, at most `width` columns (60 or more): a line on the run, one a rank, what the columns are, the loss,
/// the busiest edges, the stragglers. Where there is no room for all columns, epoch, stale, it/s and sent go in turn.
/// A straggler is a rank whose newest record is more than `straggles` of the fastest rank's iterations behind it. A run
/// without a summary whose files have not changed for `dead_after_s` (and for five times what lies between two records)
/// is probably dead.
std::string watch_view(const WatchedRun& run, std::size_t width);

inline constexpr double straggles = 0.05;
inline constexpr double dead_after_s = 300.0;
inline constexpr std::size_t shown_ranks = 32;
inline constexpr std::size_t shown_edges = 8;

}  // namespace hearsay

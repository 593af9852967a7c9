#pragma once
// The longest recent silence of every segment: a peak hold that forgets.
//   at an event after a silence T:  peak ← max(T, peak − (peak − T) / 8);  at the start peak = 1
// A longer silence counts at once; shorter ones take an eighth of the difference each, so a peak is forgotten within
// some 20 events.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/ids.hpp"
#include "base/state/archive.hpp"

namespace hearsay {

class LongestSilence {
 public:
  explicit LongestSilence(std::size_t segments) : peaks_(segments, 1.0) {}

  /// An event of segment s, `silence` iterations (≥ 1) after the one before.
  void event(SegmentId s, Iteration silence) {
    constexpr double memory = 8.0;
    const auto now = static_cast<double>(silence);
    peaks_[s] = std::max(now, peaks_[s] - (peaks_[s] - now) / memory);
  }
  /// Iterations, ≥ 1.
  double longest(SegmentId s) const { return peaks_[s]; }
  void state(Archive& archive) { archive.values("longest silences", std::span(peaks_)); }

 private:
  std::vector<double> peaks_;  // (segments)
};

}  // namespace hearsay

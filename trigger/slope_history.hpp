#pragma once
// The slopes of the last few events of every segment, for the adaptive policies.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "trigger/trigger.hpp"

namespace hearsay {

/// A window of `length` slopes a segment, oldest first; slots that no event has filled yet are 0.
class SlopeHistory {
 public:
  SlopeHistory(std::size_t segments, std::size_t length)
      : length_(length), slopes_(segments * length, 0.0), count_(segments, 0) {}

  std::size_t length() const { return length_; }
  /// Drops the oldest slope of the segment and appends `slope`.
  void push(SegmentId s, double slope) {
    const auto window = slots(s);
    std::shift_left(window.begin(), window.end(), 1);
    window.back() = slope;
    count_[s] = std::min(count_[s] + 1, length_);
  }
  /// Slopes pushed so far, at most `length()`.
  std::size_t count(SegmentId s) const { return count_[s]; }
  /// Added afresh every time, so rounding does not pile up.
  double sum(SegmentId s) const {
    const auto first = slopes_.begin() + static_cast<std::ptrdiff_t>(s * length_);
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(length_), 0.0);
  }

  void state(Archive& archive) {
    archive.values("slopes", std::span(slopes_));
    archive.values("numbers of slopes", std::span(count_));
  }

 private:
  std::span<double> slots(SegmentId s) { return std::span(slopes_).subspan(s * length_, length_); }

  std::size_t length_;
  std::vector<double> slopes_;      // (segments, length)
  std::vector<std::size_t> count_;  // (segments)
};

}  // namespace hearsay

#pragma once
// How old what a neighbour sent is when it is used.
//   in seconds:     now − the moment that its packet says, on clocks that the ranks start together
//   in iterations:  how many this rank has begun since that moment; the counters of two ranks that go at unlike speeds
//                   cannot be compared
// The clocks start after the barrier of opening the windows, so they differ by what leaving it takes: microseconds on
// a host, a transfer between hosts. A younger packet than that is of age 0.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.hpp"

namespace hearsay {

/// A reading of the run's clock.
using TimePoint = std::chrono::nanoseconds;

/// A moment since the ranks' common start as a packet says it: 24 bits, in steps of 0.1 ms, so that it comes again
/// after 28 minutes.
struct Stamp {
  static constexpr int bits = 24;
  static constexpr std::chrono::microseconds step{100};
  std::uint32_t count = 0;

  static Stamp of(TimePoint since_start);
  /// How long ago it was, up to 25 minutes; 0 for a moment that is still to come.
  TimePoint age(TimePoint now) const;
};

struct Age {
  std::int64_t iterations = 0;  ///< begun by this rank since then
  TimePoint time{};
};

/// When this rank began its iterations: the latest 4,096 of them.
class IterationStarts {
 public:
  void begin(TimePoint at) { starts_[begun_++ % most] = at; }
  /// How many have begun since `then`, up to 4,096.
  std::int64_t since(TimePoint then) const;

 private:
  static constexpr std::size_t most = 4096;
  std::array<TimePoint, most> starts_{};
  std::size_t begun_ = 0;
};

/// Ages in seconds, counted in bins: below 0.1 ms, then four for every doubling.
struct AgeBins {
  static constexpr std::size_t count = 96;
  static std::size_t of(TimePoint age);
  /// The middle of a bin, at most a tenth from any age in it. Seconds.
  static double middle_s(std::size_t bin);
};

/// The bin in which the sample lies below which a part q of all samples is; 0 without samples.
std::size_t quantile_bin(std::span<const std::uint64_t> samples, double q);

}  // namespace hearsay

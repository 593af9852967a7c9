#include "runtime/transport/age.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearsay {
namespace {

constexpr double bins_a_doubling = 4.0;
constexpr std::uint32_t range = 1U << Stamp::bits;
constexpr std::uint32_t most_ahead = std::chrono::minutes(2) / Stamp::step;  // far more than clocks differ

}  // namespace

Stamp Stamp::of(TimePoint since_start) { return {static_cast<std::uint32_t>(since_start / step) % range}; }

TimePoint Stamp::age(TimePoint now) const {
  const std::uint32_t steps = (of(now).count + range - count) % range;
  return steps < range - most_ahead ? TimePoint(steps * step) : TimePoint{};
}

std::int64_t IterationStarts::since(TimePoint then) const {
  std::size_t later = 0;
  while (later < std::min(begun_, most) && starts_[(begun_ - 1 - later) % most] > then) ++later;
  return static_cast<std::int64_t>(later);
}

std::size_t AgeBins::of(TimePoint age) {
  const double steps = std::chrono::duration<double>(age) / Stamp::step;
  if (steps < 1.0) return 0;
  return std::min(count - 1, 1 + static_cast<std::size_t>(bins_a_doubling * std::log2(steps)));
}

double AgeBins::middle_s(std::size_t bin) {
  const double step_s = std::chrono::duration<double>(Stamp::step).count();
  return bin == 0 ? step_s / 2.0 : step_s * std::exp2((static_cast<double>(bin) - 0.5) / bins_a_doubling);
}

std::size_t quantile_bin(std::span<const std::uint64_t> samples, double q) {
  const auto all = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
  const double below = q * static_cast<double>(all);
  double sum = 0.0;
  for (std::size_t bin = 0; bin < samples.size(); ++bin) {
    sum += static_cast<double>(samples[bin]);
    if (samples[bin] > 0 && sum >= below) return bin;
  }
  return 0;
}

}  // namespace hearsay

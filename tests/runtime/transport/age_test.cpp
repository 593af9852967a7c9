// Ages: what a packet's 24 bits say of a moment, and how they are counted.
#include "runtime/transport/age.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <rapidcheck.h>

namespace age_test {

using namespace hearsay;

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t day_ns = 86'400'000'000'000;

}  // namespace

TEST_CASE("a stamp says how long ago it was, to a step, at any time of a run of days") {
  rc::check([] {
    const TimePoint then{*rc::gen::inRange<std::int64_t>(0, 10 * day_ns)};
    const TimePoint ago{*rc::gen::inRange<std::int64_t>(0, 1'550'000'000'000)};
    const TimePoint said = Stamp::of(then).age(then + ago);
    RC_ASSERT(said > ago - Stamp::step);
    RC_ASSERT(said < ago + Stamp::step);
  });
}

TEST_CASE("a moment that is still to come was not long ago: clocks differ a little") {
  rc::check([] {
    const TimePoint now{*rc::gen::inRange<std::int64_t>(0, 10 * day_ns)};
    const TimePoint ahead{*rc::gen::inRange<std::int64_t>(0, 60'000'000'000)};
    RC_ASSERT(Stamp::of(now + ahead).age(now) == TimePoint{});
  });
}

TEST_CASE("ages in iterations are this rank's own") {
  IterationStarts starts;
  CHECK(starts.since(0s) == 0);
  for (int k = 1; k <= 10'000; ++k) starts.begin(k * 1s);
  CHECK(starts.since(10'000s) == 0);
  CHECK(starts.since(9'999s) == 1);
  CHECK(starts.since(9'990s + 500ms) == 10);
  CHECK(starts.since(1s) == 4096);  // as far as it remembers
}

TEST_CASE("a bin's middle is within a tenth of every age in it, and older ages have later bins") {
  rc::check([] {
    const TimePoint age{*rc::gen::inRange<std::int64_t>(100'000, 800'000'000'000)};
    const TimePoint older = age + TimePoint{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000)};
    const double seconds = 1e-9 * static_cast<double>(age.count());
    RC_ASSERT(std::abs(AgeBins::middle_s(AgeBins::of(age)) - seconds) <= 0.1 * seconds);
    RC_ASSERT(AgeBins::of(older) >= AgeBins::of(age));
    RC_ASSERT(AgeBins::of(older) < AgeBins::count);
  });
  CHECK(AgeBins::of(0s) == 0);
  CHECK(AgeBins::of(99us) == 0);
}

TEST_CASE("a quantile is the bin below whose end such a part of the samples lies") {
  rc::check([] {
    const auto samples = *rc::gen::container<std::vector<std::uint64_t>>(10, rc::gen::inRange<std::uint64_t>(0, 5));
    const double q = *rc::gen::inRange(1, 100) / 100.0;
    const std::size_t bin = quantile_bin(samples, q);
    double all = 0.0, below = 0.0, until = 0.0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all += static_cast<double>(samples[i]);
      if (i < bin) below += static_cast<double>(samples[i]);
      if (i <= bin) until += static_cast<double>(samples[i]);
    }
    RC_ASSERT(until >= q * all);
    RC_ASSERT(all == 0.0 || below < q * all);
  });
}

}  // namespace age_test

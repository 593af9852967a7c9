// Norms of all segments: exact on integers, within the stated error of the exact value on anything else.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "tests/runtime/gpu/machine.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

using namespace test;
using device::SegmentRange;

std::vector<SegmentRange> segments_of(std::span<const std::size_t> lengths) {
  std::vector<SegmentRange> segments;
  std::uint64_t offset = 0;
  for (const std::size_t length : lengths) {
    segments.push_back({offset, length});
    offset += length;
  }
  return segments;
}

constexpr std::size_t lengths[]{1, 10, 0, 5000, 2, 16384, 16383, 40000, 64, 3};

std::size_t total() {
  std::size_t sum = 0;
  for (const std::size_t length : lengths) sum += length;
  return sum;
}

TEST_CASE("the processor's norms, bit for bit, where no sum is rounded") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const unsigned shift : {0U, 1U, 2U}) {
      const auto values = tied_values(7, total());
      const auto segments = segments_of(lengths);
      const auto norms = machine->norms(values, segments, shift);
      REQUIRE(norms.size() == segments.size());
      for (std::size_t s = 0; s < segments.size(); ++s)
        CHECK(norms[s] == norm(std::span(values).subspan(segments[s].offset, segments[s].length)));
    }
  }
}

TEST_CASE("within the stated error of the exact norm, whatever the values") {
  for (const auto& machine : machines()) {
    CHECK(rc::check(machine->name(), [&](std::uint64_t seed) {
      std::vector<float> values = normal_values(seed, total());
      for (float& x : values) x = std::ldexp(x, static_cast<int>(seed % 200) - 100);
      const auto segments = segments_of(lengths);
      const auto norms = machine->norms(values, segments);
      for (std::size_t s = 0; s < segments.size(); ++s) {
        long double exact = 0.0L;
        for (const float x : std::span(values).subspan(segments[s].offset, segments[s].length))
          exact += static_cast<long double>(x) * x;
        exact = std::sqrt(exact);
        RC_ASSERT(std::abs(norms[s] - exact) <= device::norm_error(segments[s].length) * exact);
      }
    }));
  }
}

TEST_CASE("segments do not know each other: what is not finite stays in its own") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    auto values = normal_values(1, 100);
    values[49] = std::numeric_limits<float>::infinity();
    values[50] = std::numeric_limits<float>::quiet_NaN();
    const std::size_t four[]{49, 1, 1, 49};
    const auto norms = machine->norms(values, segments_of(four));
    CHECK(std::isfinite(norms[0]));
    CHECK(norms[1] == std::numeric_limits<double>::infinity());
    CHECK(std::isnan(norms[2]));
    CHECK(std::isfinite(norms[3]));
  }
}

TEST_CASE("no segments, and the same bits for the same values however threads are ordered") {
  const auto values = normal_values(2, total());
  std::vector<double> before;
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    CHECK(machine->norms({}, {}).empty());
    const auto norms = machine->norms(values, segments_of(lengths));
    if (!before.empty()) CHECK(norms == before);
    before = norms;
  }
}

}  // namespace
}  // namespace hearsay

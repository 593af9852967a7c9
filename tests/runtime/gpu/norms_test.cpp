// Norms of all segments, and of their differences: exact on integers, within the stated error of the exact value on
// anything else.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "tests/runtime/gpu/machine.hpp"
#include "trigger/trigger.hpp"

namespace hearsay::norms_test {
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

// The differences, on a device as an exchange asks for them; the processor keeps the same laws.

Layout layout_of_lengths() {
  Layout layout;
  for (const std::size_t length : lengths) layout.append("", {static_cast<std::int64_t>(length)});
  return layout;
}

std::vector<std::shared_ptr<Device>> devices() { return {processor(), replica_device(0), replica_device(1, 4096)}; }

/// The values behind `shift` others.
std::vector<float> behind(std::size_t shift, std::span<const float> values) {
  std::vector<float> all(shift, 1e9F);
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

std::vector<double> change_norms(Device& device, const Layout& layout, std::span<const float> x,
                                 std::span<const float> y, std::size_t shift_x = 0, std::size_t shift_y = 0) {
  FloatBlock there_x = device.block(shift_x + x.size()), there_y = device.block(shift_y + y.size());
  device.put(std::as_bytes(std::span<const float>(behind(shift_x, x))), there_x.span());
  device.put(std::as_bytes(std::span<const float>(behind(shift_y, y))), there_y.span());
  std::vector<double> norms(layout.count(), -1.0);
  device.change_norms(layout)(there_x.span().subspan(shift_x), there_y.span().subspan(shift_y), norms);
  return norms;
}

std::vector<float> differences(std::span<const float> x, std::span<const float> y) {
  std::vector<float> all(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) all[i] = x[i] - y[i];
  return all;
}

TEST_CASE("changes: the processor's, bit for bit, where no sum is rounded, at any offset") {
  const Layout layout = layout_of_lengths();
  const auto x = tied_values(7, layout.size()), y = tied_values(8, layout.size()), difference = differences(x, y);
  for (const auto& device : devices()) {
    for (const std::size_t shift_x : {0, 1, 4}) {
      for (const std::size_t shift_y : {0, 3, 4}) {
        const auto norms = change_norms(*device, layout, x, y, shift_x, shift_y);
        for (SegmentId s = 0; s < layout.count(); ++s)
          CHECK(norms[s] == norm(std::span(difference).subspan(layout[s].offset, layout[s].length)));
      }
    }
  }
}

TEST_CASE("changes: within the stated error of the exact norm, the differences taken in float") {
  const Layout layout = layout_of_lengths();
  const auto x = normal_values(3, layout.size()), y = normal_values(4, layout.size()), difference = differences(x, y);
  for (const auto& device : devices()) {
    const auto norms = change_norms(*device, layout, x, y);
    for (SegmentId s = 0; s < layout.count(); ++s) {
      long double exact = 0.0L;
      for (const float d : std::span(difference).subspan(layout[s].offset, layout[s].length))
        exact += static_cast<long double>(d) * d;
      exact = std::sqrt(exact);
      CHECK(std::abs(norms[s] - exact) <= device::norm_error(layout[s].length) * exact);
    }
  }
}

TEST_CASE("changes from 0 are the norms of the same device, bit for bit, and from itself 0") {
  const Layout layout = layout_of_lengths();
  const auto x = normal_values(5, layout.size());
  const std::vector<float> none(layout.size(), 0.0F);
  for (const auto& device : devices()) {
    FloatBlock there = device->block(layout.size());
    device->put(std::as_bytes(std::span(x)), there.span());
    std::vector<double> norms(layout.count());
    device->norms(layout)(there.span(), norms);
    CHECK(change_norms(*device, layout, x, none) == norms);
    CHECK(change_norms(*device, layout, none, x) == norms);
    CHECK(change_norms(*device, layout, x, x) == std::vector<double>(layout.count(), 0.0));
  }
}

TEST_CASE("changes: what is not finite stays in its own segment, whichever block it is in") {
  Layout layout;
  for (const int length : {49, 1, 1, 49}) layout.append("", {length});
  for (const auto& device : devices()) {
    for (const bool in_x : {true, false}) {
      auto x = normal_values(1, 100), y = normal_values(2, 100);
      (in_x ? x : y)[49] = std::numeric_limits<float>::infinity();
      (in_x ? x : y)[50] = std::numeric_limits<float>::quiet_NaN();
      const auto norms = change_norms(*device, layout, x, y);
      CHECK(std::isfinite(norms[0]));
      CHECK(norms[1] == std::numeric_limits<double>::infinity());
      CHECK(std::isnan(norms[2]));
      CHECK(std::isfinite(norms[3]));
    }
  }
}

}  // namespace
}  // namespace hearsay::norms_test

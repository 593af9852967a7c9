// MSTopK on the GPU keeps the law of the paper, and picks what the processor's selector picks where means are exact.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay {
namespace {

using namespace test;

/// The draw that the processor's selector makes on its first call with seed 0.
std::uint64_t first_draw() { return Random(stream_seed(0, "mstopk selector", 0)).engine()(); }

TEST_CASE("the processor's selection, where the mean of all magnitudes is exact") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const std::size_t n : {1U, 2U, 1024U, 4096U, 32768U}) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}, n / 100, n / 10, n / 2, n}) {
        CAPTURE(n);
        CAPTURE(k);
        for (const auto& values : {tied_values(n, n), distinct_values(n, n), std::vector<float>(n, 3.0F)}) {
          const auto selector = make_selector("{name: mstopk, steps: 30}");
          const Indices wanted = selected(*selector, values, k);
          const Selected found = machine->mstopk(values, static_cast<std::uint32_t>(k), 30, first_draw());
          CHECK(found.positions == wanted);
          std::vector<float> wanted_values;
          for (const std::uint32_t i : wanted) wanted_values.push_back(values[i]);
          CHECK(found.values == wanted_values);
        }
      }
    }
  }
}

TEST_CASE("k values, ascending, and after many halvings the largest, for any values") {
  for (const auto& machine : machines()) {
    CHECK(rc::check(machine->name(), [&](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = 10 + random.below(3000), k = 1 + random.below(n / 10);
      const auto values = normal_values(seed, n);
      const Selected found = machine->mstopk(values, static_cast<std::uint32_t>(k), 60, random.engine()());
      RC_ASSERT(found.positions == largest(values, k));  // 60 halvings separate any two different floats
    }));
  }
}

/// The thresholds of the paper's bisection, by counting.
struct Thresholds {
  float upper = std::numeric_limits<float>::infinity(), lower = 0.0F;
};
Thresholds bisected(std::span<const float> values, std::size_t k, unsigned steps) {
  long double sum = 0.0L;
  double high = 0.0;
  for (const float v : values) {
    sum += std::abs(v);
    high = std::max<double>(high, std::abs(v));
  }
  auto low = static_cast<double>(sum / static_cast<long double>(values.size()));
  Thresholds found;
  for (unsigned step = 0; step < steps; ++step) {
    const double middle = (low + high) / 2;
    const auto count = static_cast<std::size_t>(std::count_if(
        values.begin(), values.end(), [&](float v) { return std::abs(v) >= static_cast<float>(middle); }));
    (count <= k ? high : low) = middle;
    (count <= k ? found.upper : found.lower) = static_cast<float>(middle);
    if (count == k) break;
  }
  return found;
}

TEST_CASE("few halvings: all from the upper threshold, none below the lower one, one slice between") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    const auto values = normal_values(5, 20000);
    for (const unsigned steps : {1U, 3U, 6U}) {
      const auto [upper, lower] = bisected(values, 777, steps);
      for (const std::uint64_t draw : {std::uint64_t{0}, std::uint64_t{77}, std::uint64_t{0x123456789abcdef}}) {
        const Indices found = machine->mstopk(values, 777, steps, draw).positions;
        CHECK(found.size() == 777);
        CHECK(ascending(found));
        std::string band;  // 1 for what was kept of it
        bool all_above = true, none_below = true;
        for (std::uint32_t i = 0; i < values.size(); ++i) {
          const bool kept = std::ranges::binary_search(found, i);
          const float magnitude = std::abs(values[i]);
          if (magnitude >= upper) all_above = all_above && kept;
          if (magnitude < lower) none_below = none_below && !kept;
          if (magnitude >= lower && magnitude < upper) band += kept ? '1' : '0';
        }
        CHECK(all_above);
        CHECK(none_below);
        CHECK(band.find('1') != std::string::npos);
        CHECK(band.substr(band.find('1'), band.rfind('1') - band.find('1')).find('0') == std::string::npos);
      }
    }
  }
}

TEST_CASE("a value that is not finite is named") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    auto values = normal_values(5, 9000);
    values[8123] = -std::numeric_limits<float>::infinity();
    CHECK_THROWS_WITH_AS(machine->mstopk(values, 5, 30, 1), doctest::Contains("value 8123 of 9000 is -inf"),
                         DivergenceError);
  }
}

}  // namespace
}  // namespace hearsay

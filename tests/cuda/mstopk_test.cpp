// MSTopK on the GPU keeps the law of the paper, and picks what the processor's selector picks where means are exact.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>

#include "runtime/base/error.hpp"
#include "tests/cuda/machine.hpp"

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
          for (std::size_t e = 0; e < k; ++e) CHECK(found.values[e] == values[wanted[e]]);
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

TEST_CASE("few halvings: all from the upper threshold, none below the lower one, one slice between") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    const auto values = normal_values(5, 20000);
    for (const unsigned steps : {1U, 3U, 6U}) {
      const Selected found = machine->mstopk(values, 777, steps, 0x123456789abcdefULL);
      CHECK(found.positions.size() == 777);
      CHECK(ascending(found.positions));
      const Selected other = machine->mstopk(values, 777, steps, 77);
      float least = std::numeric_limits<float>::max();
      for (const float v : found.values) least = std::min(least, std::abs(v));
      for (const float v : other.values) CHECK(std::abs(v) > 0.0F);
      std::size_t above = 0;  // values that no slice can leave out: larger than all of the band
      for (const float v : values) above += std::abs(v) >= least ? 1 : 0;
      CHECK(above >= 777);
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

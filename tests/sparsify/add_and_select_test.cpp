// Adding and selecting in one pass is adding, then selecting: for every selector, whatever it remembers.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>

#include "base/error.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::add_and_select_test {
namespace {

using namespace test;

/// Error feedback for some iterations: what is selected is set to 0. Gradients change their size suddenly, so that a
/// remembered threshold is now too low, now too high.
bool agrees(Selector& fused, Selector& reference, std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n), expected(n);
  Indices found, wanted;
  for (int iteration = 0; iteration < 12; ++iteration) {
    std::vector<float> g = normal_values(seed + static_cast<std::uint64_t>(iteration), n);
    const float size = std::ldexp(1.0F, static_cast<int>(random.below(12)) - 6);
    for (float& x : g) x = iteration % 4 == 3 ? size : size * x;  // now and then all are equal
    const std::size_t k = random.below(n + 1);
    fused.add_and_select(values, g, 0.5F, k, found);
    for (std::size_t i = 0; i < n; ++i) expected[i] += 0.5F * g[i];
    reference.select(expected, k, wanted);
    if (found != wanted || values != expected) return false;
    for (const std::uint32_t i : found) values[i] = expected[i] = 0.0F;
  }
  return true;
}

TEST_CASE("adding and selecting at once is adding, then selecting") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    CHECK(rc::check(std::string(entry.name), [&](std::uint64_t seed) {
      const auto n = *rc::gen::element<std::size_t>(1, 2, 63, 64, 65, 200, 1000);
      const auto fused = make_selector(entry), reference = make_selector(entry);
      RC_ASSERT(agrees(*fused, *reference, seed, n));
    }));
  }
}

TEST_CASE("one selector may serve several runs of values in turn") {
  const auto topk = make_selector("name: topk");
  std::vector<float> large(300), small(300);
  Indices found;
  for (int iteration = 0; iteration < 5; ++iteration) {
    const auto g = normal_values(static_cast<std::uint64_t>(iteration), 300);
    topk->add_and_select(large, g, 100.0F, 10, found);
    CHECK(found == largest(large, 10));
    topk->add_and_select(small, g, 0.01F, 20, found);
    CHECK(found == largest(small, 20));
  }
}

TEST_CASE("a sum that is not finite is an error that says where, also when a threshold is remembered") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const auto selector = make_selector(entry);
      std::vector<float> values(200), g = normal_values(3, 200);
      Indices found;
      selector->add_and_select(values, g, 1.0F, 20, found);
      g[150] = bad;
      CHECK_THROWS_WITH_AS(selector->add_and_select(values, g, 1.0F, 20, found), doctest::Contains("150"),
                           DivergenceError);
    }
  }
}

}  // namespace
}  // namespace hearsay::add_and_select_test

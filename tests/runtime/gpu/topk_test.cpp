// The fused selection is adding, then the processor's exact top-k, then clearing: for every order of threads.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>

#include "base/error.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::topk_test {
namespace {

using namespace test;

/// Adds, selects and clears on the processor.
Selected expected(std::vector<float>& values, std::span<const float> addend, float scale, std::size_t k) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * addend[i];
  Selected selected{largest(values, k), {}};
  for (const std::uint32_t i : selected.positions) {
    selected.values.push_back(values[i]);
    values[i] = 0.0F;
  }
  return selected;
}

/// One call that must agree in entries and in what stays.
Selected check_call(FusedTopK& topk, std::vector<float>& values, std::span<const float> addend, float scale,
                    std::size_t k) {
  std::vector<float> kept = values;
  const Selected wanted = expected(kept, addend, scale, k);
  const Selected found = topk.add_and_select(values, addend, scale, static_cast<std::uint32_t>(k));
  CHECK(found.positions == wanted.positions);
  CHECK(found.values == wanted.values);
  CHECK(values == kept);
  return found;
}

TEST_CASE("every size, count and kind of values, on a first call and on a second one") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const std::size_t n : {0U, 1U, 2U, 3U, 2047U, 2048U, 2049U, 8191U, 8193U, 40001U}) {
      CAPTURE(n);
      for (const std::size_t k : {std::size_t{0}, std::min<std::size_t>(1, n), n / 100, n / 3, n}) {
        CAPTURE(k);
        for (const auto& start : {normal_values(n, n), tied_values(n, n), any_values(n, n), std::vector<float>(n),
                                  nearly_equal_values(n, n, 20), distinct_values(n, n)}) {
          const auto topk = machine->topk(n, static_cast<std::uint32_t>(k));
          auto values = start;
          check_call(*topk, values, std::vector<float>(n), 1.0F, k);
          check_call(*topk, values, normal_values(n + 1, n), 0.5F, k);
        }
      }
    }
  }
}

TEST_CASE("a hundred thousand values, and runs that do not begin on a multiple of 16 bytes") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const unsigned shift : {0U, 1U, 3U}) {
      const std::size_t n = 100000 + shift;
      const auto topk = machine->topk(n, 1000, shift);
      auto values = normal_values(1, n);
      for (std::uint64_t call = 0; call < 3; ++call) check_call(*topk, values, normal_values(call, n), 0.25F, 1000);
    }
  }
}

TEST_CASE("more chunks than a block has threads") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 1200000, k = 1000;
    const auto topk = machine->topk(n, k);
    auto values = normal_values(1, n);
    check_call(*topk, values, std::vector<float>(n), 1.0F, k);
  }
}

TEST_CASE("candidates that fill their pages exactly") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 3 * 8192, k = 8192;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    const std::vector<float> ones(n, 1.0F);
    check_call(*topk, values, ones, 1.0F, k);
    const Selected found = check_call(*topk, values, ones, 1.0F, k);
    CHECK(found.candidates == n);
    CHECK_FALSE(found.read_again);
  }
}

TEST_CASE("the level that is carried makes one read enough once values change as they do in training") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 50000, k = 500;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    CHECK(check_call(*topk, values, normal_values(0, n), 1.0F, k).read_again);  // nothing is carried yet
    int again = 0;
    for (std::uint64_t call = 1; call <= 20; ++call)
      again += check_call(*topk, values, normal_values(call, n), 1.0F, k).read_again ? 1 : 0;
    CHECK(again <= 3);
  }
}

TEST_CASE("a level that is far too high: fewer candidates than k, and all values are searched") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 20000, k = 200;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    check_call(*topk, values, normal_values(0, n), 1000.0F, k);
    std::fill(values.begin(), values.end(), 0.0F);
    const Selected found = check_call(*topk, values, normal_values(1, n), 0.001F, k);
    CHECK(found.read_again);
    CHECK(found.candidates < k);
  }
}

TEST_CASE("a level that is far too low: more candidates than fit, and all values are searched") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 120000, k = 10;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    check_call(*topk, values, normal_values(0, n), 0.001F, k);
    const Selected found = check_call(*topk, values, normal_values(1, n), 1000.0F, k);
    CHECK(found.read_again);
    CHECK(found.candidates > n / 2);
  }
}

TEST_CASE("many candidates that fit are candidates still, in the order of positions") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 60000, k = 10000;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    check_call(*topk, values, normal_values(0, n), 1.0F, k);
    const Selected found = check_call(*topk, values, normal_values(1, n), 2.0F, k);
    CHECK_FALSE(found.read_again);
    CHECK(found.candidates > k);
  }
}

TEST_CASE("candidates that lie all together in one part of the run") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 100000, k = 4000;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    for (std::uint64_t call = 0; call < 4; ++call) {
      auto g = normal_values(call, n);
      for (std::size_t i = 30000; i < 36000; ++i) g[i] *= 100.0F;
      check_call(*topk, values, g, 1.0F, k);
    }
  }
}

TEST_CASE("k may change from call to call, and sizes of gradients suddenly") {
  for (const auto& machine : machines()) {
    CHECK(rc::check(machine->name(), [&](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = 1 + random.below(6000);
      const auto topk = machine->topk(n, static_cast<std::uint32_t>(n));
      std::vector<float> values(n);
      std::size_t k = random.below(n + 1);
      for (int call = 0; call < 6; ++call) {
        auto g =
            random.below(3) == 0 ? tied_values(seed + 7, n) : normal_values(seed + static_cast<std::uint64_t>(call), n);
        if (random.below(3) == 0) k = random.below(n + 1);
        const float scale = std::ldexp(1.0F, static_cast<int>(random.below(10)) - 5);
        std::vector<float> kept = values;
        const Selected wanted = expected(kept, g, scale, k);
        const Selected found = topk->add_and_select(values, g, scale, static_cast<std::uint32_t>(k));
        RC_ASSERT(found.positions == wanted.positions);
        RC_ASSERT(found.values == wanted.values);
        RC_ASSERT(values == kept);
      }
    }));
  }
}

TEST_CASE("heavy tails: magnitudes over many powers of ten") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 30000, k = 300;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n);
    for (std::uint64_t call = 0; call < 5; ++call) {
      auto g = normal_values(call, n);
      for (float& x : g) x = x * x * x * x * x * x * x;
      check_call(*topk, values, g, 1.0F, k);
    }
  }
}

TEST_CASE("a sum that is not finite is an error that says where, whatever is carried; the next call is right again") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const float bad : {nan, infinity, -infinity}) {
      constexpr std::size_t n = 5000, k = 50;
      const auto topk = machine->topk(n, k);
      std::vector<float> values(n);
      auto g = normal_values(3, n);
      for (int call = 0; call < 2; ++call) {
        for (const std::size_t position : {std::size_t{0}, std::size_t{3000}, n - 1}) {
          const float before = std::exchange(g[position], bad);
          auto spoilt = values;
          CHECK_THROWS_WITH_AS(topk->add_and_select(spoilt, g, 1.0F, k),
                               doctest::Contains(("value " + std::to_string(position) + " of").c_str()),
                               DivergenceError);
          g[position] = before;
        }
        check_call(*topk, values, g, 1.0F, k);
      }
    }
  }
}

TEST_CASE("mass is kept: what was there and what was added is what was taken and what stays, exactly for integers") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    constexpr std::size_t n = 10000, k = 100;
    const auto topk = machine->topk(n, k);
    std::vector<float> values(n), sum(n), taken(n);
    for (std::uint64_t call = 0; call < 8; ++call) {
      const auto g = tied_values(call, n);
      for (std::size_t i = 0; i < n; ++i) sum[i] += g[i];
      const Selected found = topk->add_and_select(values, g, 1.0F, k);
      for (std::size_t e = 0; e < k; ++e) taken[found.positions[e]] += found.values[e];
    }
    for (std::size_t i = 0; i < n; ++i) taken[i] += values[i];
    CHECK(taken == sum);
  }
}

}  // namespace
}  // namespace hearsay::topk_test

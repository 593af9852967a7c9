// Random: the same numbers on every machine, in range and without bias.
#include "base/random.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace random_test {

using hearsay::Random;
using hearsay::stream_seed;

TEST_CASE("below(n) stays below n and hits every value equally often") {
  CHECK(rc::check("in range", [](std::uint64_t seed) {
    const auto n = *rc::gen::positive<std::uint64_t>();
    Random random(seed);
    for (int i = 0; i < 20; ++i) RC_ASSERT(random.below(n) < n);
  }));
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 10'000) < 500);  // 5 standard deviations of 93
  CHECK(random.below(1) == 0);
}

TEST_CASE("uniform is in [0, 1) with mean 1/2, normal has mean 0 and variance 1") {
  Random random(2);
  constexpr int draws = 100'000;
  double sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double u = random.uniform();
    const double z = random.normal();
    REQUIRE((u >= 0.0 && u < 1.0));
    sum += u;
    normal_sum += z;
    normal_squares += z * z;
  }
  CHECK(sum / draws == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal_sum / draws) < 0.016);  // 5 / √draws
  CHECK(normal_squares / draws == doctest::Approx(1.0).epsilon(0.025));
}

TEST_CASE("shuffle is a permutation, and every permutation comes equally often") {
  CHECK(rc::check("permutation", [](std::uint64_t seed, std::vector<int> values) {
    std::vector<int> shuffled = values;
    Random(seed).shuffle(std::span(shuffled));
    RC_ASSERT(std::is_permutation(values.begin(), values.end(), shuffled.begin(), shuffled.end()));
  }));
  Random random(3);
  std::array<int, 27> counts{};
  for (int i = 0; i < 6'000; ++i) {
    std::array<int, 3> order{0, 1, 2};
    random.shuffle(std::span<int>(order));
    ++counts[static_cast<std::size_t>(9 * order[0] + 3 * order[1] + order[2])];
  }
  for (const int count : counts) CHECK((count == 0 || std::abs(count - 1'000) < 150));  // 5 standard deviations of 29
  CHECK(std::count(counts.begin(), counts.end(), 0) == 21);
}

TEST_CASE("streams differ by seed, purpose and index") {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const char* purpose : {"", "a", "b", "ab", "ba"})
      for (std::uint64_t index = 0; index < 10; ++index) seeds.insert(stream_seed(seed, purpose, index));
  CHECK(seeds.size() == 500);
}

TEST_CASE("the numbers are fixed for ever: configurations name them by their seed") {
  CHECK(hearsay::scramble(0) == 0xe220a8397b1dcdafULL);  // the first output of SplitMix64 from 0
  std::mt19937_64 standard;
  standard.discard(9999);
  CHECK(standard() == 9981545732273789042ULL);  // [rand.predef] of the C++ standard
  // The rest was computed by an independent implementation of both generators.
  Random random(stream_seed(7, "partition", 3));
  CHECK(stream_seed(7, "partition", 3) == 0xdeae5e3ba0217564ULL);
  CHECK(random.below(1000) == 332);
  CHECK(random.uniform() == 0.448198193891686);
  CHECK(random.normal() == doctest::Approx(0.8465293712455366).epsilon(1e-12));
  std::array<int, 5> order{0, 1, 2, 3, 4};
  random.shuffle(std::span<int>(order));
  CHECK(order == std::array<int, 5>{1, 2, 0, 4, 3});
}

}  // namespace random_test

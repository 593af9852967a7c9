// The bounds that the approximate selectors state, and what chance decides in them.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <set>

#include "tests/sparsify/values.hpp"

namespace hearsay::approximate_selectors_test {
namespace {

using namespace test;

/// The smallest magnitude that is kept and the largest that is not.
struct Cut {
  float least_kept, most_left;
};
Cut cut_of(std::span<const float> values, const Indices& kept) {
  Cut cut{std::numeric_limits<float>::infinity(), 0.0F};
  std::size_t next = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float magnitude = std::abs(values[i]);
    if (next < kept.size() && kept[next] == i) {
      cut.least_kept = std::min(cut.least_kept, magnitude);
      ++next;
    } else {
      cut.most_left = std::max(cut.most_left, magnitude);
    }
  }
  return cut;
}

/// One large value in every 2 · `period`, so that a sample in step with them sees all of them or none.
std::vector<float> striped_values(std::size_t n, std::size_t period) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 97) + (i % period == 0 ? 1000.0F : 1.0F);
  return values;
}

TEST_CASE("sampled: nothing that is left is larger than what is kept") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const auto n = *rc::gen::element<std::size_t>(1, 100, 5000, 40000, 100000);
    const auto k = kept_count(*rc::gen::element(0.001, 0.01, 0.1, 0.5), n);
    const auto selector = make_selector("{name: sampled, seed: " + std::to_string(seed) + "}");
    for (const auto& values : {normal_values(seed, n), tied_values(seed, n), striped_values(n, 50)}) {
      const Indices kept = selected(*selector, values, k);
      const Cut cut = cut_of(values, kept);
      RC_ASSERT(cut.least_kept >= cut.most_left);
      RC_ASSERT(10 * kept.size() >= 8 * k);
      RC_ASSERT(10 * kept.size() <= 13 * k);
    }
  }));
}

TEST_CASE("sampled: what overflows is cut by size, ties to the lower position") {
  const auto selector = make_selector("name: sampled");
  const std::vector<float> equal(200000, 1.0F);
  CHECK(selected(*selector, equal, 2000) == largest(equal, 2000));
}

TEST_CASE("sampled: few values are selected exactly") {
  const auto values = normal_values(3, 500);
  CHECK(selected(*make_selector("name: sampled"), values, 50) == largest(values, 50));
}

TEST_CASE("sampled: the count scatters around k within its bounds, and the phase makes a difference") {
  const auto values = normal_values(4, 200000);
  const auto selector = make_selector("name: sampled");
  std::set<std::size_t> counts;
  double sum = 0.0;
  for (int call = 0; call < 150; ++call) {
    const std::size_t count = selected(*selector, values, 2000).size();
    counts.insert(count);
    sum += static_cast<double>(count);
  }
  CHECK(counts.size() > 20);
  CHECK(*counts.begin() >= 1600);
  CHECK(*counts.begin() < 1900);
  CHECK(*counts.rbegin() > 2300);
  CHECK(*counts.rbegin() <= selector->most(2000, 200000));
  CHECK(selector->most(2000, 200000) == 2600);
  CHECK(sum / 150 == doctest::Approx(2000).epsilon(0.05));
}

TEST_CASE("mstopk: exactly the largest where bisection can tell all of them apart") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto n = *rc::gen::element<std::size_t>(2, 3, 100, 4097);
    const auto k = 1 + seed % (n / 2);  // above the mean magnitude, (n + 1)/2
    const auto values = distinct_values(seed, n);
    RC_ASSERT(selected(*make_selector("name: mstopk"), values, k) == largest(values, k));
  }));
}

TEST_CASE("mstopk: all above the bracket, none below it, the rest one slice of the band") {
  // Magnitudes 1 … 1000: mean 500.5, maximum 1000. One step asks at 750.25 and finds 250.
  const auto values = distinct_values(5, 1000);
  for (const std::size_t k : {100U, 300U, 700U}) {
    CAPTURE(k);
    const bool many = k >= 250;  // the band is below the only threshold, or above it
    const float upper = many ? 750.25F : std::numeric_limits<float>::infinity();
    const float lower = many ? 0.0F : 750.25F;
    std::set<Indices> different;
    for (int seed = 0; seed < 8; ++seed) {
      const auto selector = make_selector("{name: mstopk, steps: 1, seed: " + std::to_string(seed) + "}");
      const Indices kept = selected(*selector, values, k);
      different.insert(kept);
      REQUIRE(kept.size() == k);
      std::size_t next = 0;
      std::string band;  // 1: kept, 0: left
      for (std::uint32_t i = 0; i < values.size(); ++i) {
        const bool is_kept = next < k && kept[next] == i;
        next += is_kept ? 1 : 0;
        const float magnitude = std::abs(values[i]);
        if (magnitude >= upper) CHECK(is_kept);
        if (magnitude < lower) CHECK_FALSE(is_kept);
        if (magnitude >= lower && magnitude < upper) band += is_kept ? '1' : '0';
      }
      CHECK(band.rfind('1') - band.find('1') + 1 == k - (many ? 250 : 0));
    }
    CHECK(different.size() > 1);
  }
}

TEST_CASE("random: every position as often as any other") {
  const std::vector<float> values(10, 1.0F);
  for (const std::size_t k : {1U, 3U, 5U, 8U}) {
    CAPTURE(k);
    const auto selector = make_selector("name: random");
    std::array<int, 10> counts{};
    std::array<int, 10> with_first{};  // kept together with position 0
    for (int call = 0; call < 20000; ++call) {
      const Indices kept = selected(*selector, values, k);
      REQUIRE(kept.size() == k);
      for (const std::uint32_t i : kept) {
        ++counts[i];
        if (kept.front() == 0) ++with_first[i];
      }
    }
    const double share = static_cast<double>(k) / 10;
    const double pair = share * static_cast<double>(k - 1) / 9;
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(counts[i] / 20000.0 == doctest::Approx(share).epsilon(0.02 + 0.01 / share));
      if (i > 0) CHECK(std::abs(with_first[i] / 20000.0 - pair) < 0.015);
    }
  }
}

TEST_CASE("random: the values do not matter, the seed and the number of the call do") {
  const auto first = make_selector("name: random");
  const auto second = make_selector("name: random");
  const auto other = make_selector("{name: random, seed: 1}");
  const Indices drawn = selected(*first, normal_values(1, 1000), 100);
  CHECK(selected(*second, tied_values(2, 1000), 100) == drawn);
  CHECK(selected(*first, normal_values(1, 1000), 100) != drawn);
  CHECK(selected(*other, normal_values(1, 1000), 100) != drawn);
}

}  // namespace
}  // namespace hearsay::approximate_selectors_test

// Laws that every selector keeps, and what the exact ones select.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/random.hpp"
#include "sparsify/sparsify.hpp"

using namespace hearsay;

namespace {

using Indices = std::vector<std::uint32_t>;

std::unique_ptr<Selector> made(const std::string& yaml) {
  Config config = Config::from_text(yaml);
  const SelectorEntry& entry = chosen_entry(selectors(), config, "dense", "which values travel");
  auto selector = entry.make(config);
  config.throw_if_invalid();
  return selector;
}

std::unique_ptr<Selector> made(const SelectorEntry& entry) { return made("name: " + std::string(entry.name)); }

Indices selected(Selector& selector, std::span<const float> values) {
  Indices indices{42};  // what was there before must go
  selector.select(values, indices);
  return indices;
}

std::unique_ptr<Selector> topk(double density) {
  return made("{name: topk, density: " + std::to_string(density) + "}");
}

/// The definition: sort all positions by magnitude, stably, and keep the first k.
Indices largest(std::span<const float> values, std::size_t k) {
  Indices order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<float> normal_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

/// Few different magnitudes: nearly everything is a tie.
std::vector<float> tied_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random.below(7)) - 3);
  return values;
}

/// All within [1, 1 + 2^−`bits`]: one bin of a histogram over leading bits holds them all.
std::vector<float> nearly_equal_values(std::uint64_t seed, std::size_t n, int bits) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values)
    value = static_cast<float>((1.0 + std::ldexp(random.uniform(), -bits)) * (random.below(2) == 0 ? 1.0 : -1.0));
  return values;
}

/// Any finite bit pattern: denormals, both zeros, huge values.
std::vector<float> any_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32)));
    if (!std::isfinite(value)) value = random.below(2) == 0 ? 0.0F : -0.0F;
  }
  return values;
}

}  // namespace

TEST_CASE("kept_count is the rounded fraction, at least one, at most all") {
  CHECK(kept_count(0.1, 0) == 0);
  CHECK(kept_count(1.0, 0) == 0);
  CHECK(kept_count(0.001, 1) == 1);
  CHECK(kept_count(0.001, 499) == 1);
  CHECK(kept_count(0.001, 1499) == 1);
  CHECK(kept_count(0.001, 1500) == 2);
  CHECK(kept_count(0.5, 5) == 3);
  CHECK(kept_count(0.1, 27480) == 2748);
  CHECK(kept_count(1.0, 27480) == 27480);
  CHECK(kept_count(0.01, 100000000) == 1000000);
}

TEST_CASE("every selector says what it is, under a name of its own, and builds from that name") {
  std::set<std::string_view> names;
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
      CHECK_FALSE(text.empty());
    CHECK_NOTHROW(made(entry));
  }
  CHECK(names.size() >= 2);
}

TEST_CASE("positions are ascending, below n and no more than promised, for every size") {
  for (const SelectorEntry& entry : selectors()) {
    const auto selector = made(entry);
    for (const std::size_t n : {0U, 1U, 2U, 3U, 63U, 64U, 65U, 4095U, 4097U, 10001U, 1000000U}) {
      CAPTURE(entry.name);
      CAPTURE(n);
      const Indices indices = selected(*selector, normal_values(n, n));
      CHECK(indices.size() <= selector->most(n));
      CHECK(selector->most(n) <= n);
      CHECK(std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end());
      CHECK((indices.empty() || indices.back() < n));
      CHECK((n == 0 || !indices.empty()));
    }
  }
}

TEST_CASE("equal values give equal positions, whatever was selected before") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto used = made(entry);
    for (const std::size_t n : {20000U, 5U, 9000U, 0U, 20000U}) {
      const auto values = normal_values(n, n);
      CHECK(selected(*used, values) == selected(*made(entry), values));
    }
  }
}

TEST_CASE("a value that is not finite stops the run and is named") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto selector = made(entry);
    for (const float bad : {nan, -nan, infinity, -infinity}) {
      for (const std::size_t n : {1U, 100U, 50000U}) {
        for (const std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
          auto values = normal_values(n, n);
          values[place] = bad;
          Indices indices;
          const std::string said = "value " + std::to_string(place) + " of " + std::to_string(n) + " is ";
          CHECK_THROWS_AS(selector->select(values, indices), DivergenceError);
          CHECK_THROWS_WITH(selector->select(values, indices), doctest::Contains((said + (std::isnan(bad) ? ""
                                                                                          : bad > 0       ? "inf"
                                                                                                          : "-inf"))
                                                                                     .c_str()));
        }
      }
    }
  }
}

TEST_CASE("require_finite accepts every finite value") {
  const std::vector<float> values{0.0F, -0.0F, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                                  std::numeric_limits<float>::denorm_min()};
  CHECK_NOTHROW(require_finite(values));
  CHECK_NOTHROW(require_finite({}));
}

TEST_CASE("dense keeps every position") {
  const auto selector = made("name: dense");
  for (const std::size_t n : {0U, 1U, 1001U}) {
    CHECK(selector->most(n) == n);
    CHECK(selected(*selector, normal_values(1, n)) == largest(normal_values(1, n), n));
  }
}

TEST_CASE("topk with density 1 keeps what dense keeps") {
  for (const std::size_t n : {0U, 1U, 2U, 9999U})
    CHECK(selected(*topk(1.0), tied_values(n, n)) == selected(*made("name: dense"), tied_values(n, n)));
}

TEST_CASE("topk: the largest magnitudes, ties to the lower position") {
  CHECK(selected(*topk(0.5), std::vector<float>{1, -3, 2, -2, 3, 0}) == Indices{1, 2, 4});
  CHECK(selected(*topk(0.5), std::vector<float>{0.0F, -0.0F, 0.0F, 0.0F}) == Indices{0, 1});
  CHECK(selected(*topk(0.01), std::vector<float>{1, 2, -2}) == Indices{1});
  const std::vector<float> equal(100000, -1.5F);
  Indices first(10000);
  std::iota(first.begin(), first.end(), 0U);
  CHECK(selected(*topk(0.1), equal) == first);
}

TEST_CASE("topk agrees with a stable sort on values of every kind") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto n = *rc::gen::element<std::size_t>(1, 2, 3, 63, 64, 65, 1000, 4096, 4097, 4099, 9001, 30011);
    const auto density = *rc::gen::element(0.0005, 0.01, 0.1, 0.37, 0.5, 0.93, 0.9999);
    const auto bits = *rc::gen::inRange(0, 22);
    const auto selector = topk(density);
    for (const auto& values :
         {normal_values(seed, n), tied_values(seed, n), nearly_equal_values(seed, n, bits), any_values(seed, n)}) {
      const Indices indices = selected(*selector, values);
      RC_ASSERT(indices.size() == kept_count(density, n));
      RC_ASSERT(indices == largest(values, kept_count(density, n)));
    }
  }));
}

TEST_CASE("topk agrees with a stable sort on a million values") {
  for (const double density : {1e-6, 0.001, 0.1}) {
    const auto selector = topk(density);
    for (const auto& values : {normal_values(1, 1000000), tied_values(2, 1000000), nearly_equal_values(3, 1000000, 10)})
      CHECK(selected(*selector, values) == largest(values, selector->most(values.size())));
  }
}

TEST_CASE("topk: one value more is one position more") {
  const auto values = any_values(8, 20);
  for (std::size_t k = 1; k <= 20; ++k)
    CHECK(selected(*topk(static_cast<double>(k) / 20), values) == largest(values, k));
}

TEST_CASE("a density outside (0, 1] is refused") {
  for (const std::string density : {"0", "-0.1", "1.01", ".nan", "all"})
    CHECK_THROWS_AS(made("{name: topk, density: " + density + "}"), ConfigError);
}

// Laws that every selector keeps.
#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::selector_contract_test {
namespace {

using namespace test;

/// k of n values.
void check_selection(Selector& selector, std::span<const float> values, std::size_t k) {
  const std::size_t n = values.size();
  CAPTURE(n);
  CAPTURE(k);
  const Indices indices = selected(selector, values, k);
  CHECK(indices.size() <= selector.most(k, n));
  CHECK(selector.most(k, n) <= n);
  CHECK(ascending(indices));
  CHECK((indices.empty() || indices.back() < n));
}

/// How far from k the number of positions may be; dense and threshold do not look at k.
struct Stated {
  double least, most;
};
Stated stated(std::string_view name) {
  if (name == "sampled") return {0.8, 1.3};
  if (name == "dense" || name == "threshold") return {0.0, std::numeric_limits<double>::infinity()};
  return {1.0, 1.0};
}

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
    CHECK_NOTHROW(make_selector(entry));
  }
  CHECK(names.size() >= 7);
}

TEST_CASE("positions are ascending, below n and no more than promised, for every size and count") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto selector = make_selector(entry);
    for (const std::size_t n : {0U, 1U, 2U, 3U, 63U, 64U, 65U, 4095U, 4097U, 10001U}) {
      for (const std::size_t k : {std::size_t{0}, std::min<std::size_t>(1, n), n / 3, n}) {
        for (const auto& values : {normal_values(n, n), tied_values(n, n), any_values(n, n), std::vector<float>(n)})
          check_selection(*selector, values, k);
      }
    }
  }
}

TEST_CASE("a million values") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto selector = make_selector(entry);
    for (const std::size_t k : {1U, 1000U, 100000U}) check_selection(*selector, normal_values(k, 1000000), k);
  }
}

TEST_CASE("as many positions as stated, for every k of few values and some of many") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto [least, most] = stated(entry.name);
    const auto selector = make_selector(entry);
    const auto check = [&](std::span<const float> values, std::size_t k) {
      CAPTURE(values.size());
      CAPTURE(k);
      const auto count = static_cast<double>(selected(*selector, values, k).size());
      CHECK(count >= least * static_cast<double>(k));
      if (most < 2.0) CHECK(count <= most * static_cast<double>(k));
    };
    for (std::size_t k = 0; k <= 20; ++k) check(any_values(8, 20), k);
    for (const std::size_t k : {0U, 1U, 10U, 100U, 3000U, 29999U, 30000U}) {
      for (const auto& values : {normal_values(k, 30000), tied_values(k, 30000), any_values(k, 30000),
                                 nearly_equal_values(k, 30000, 20), std::vector<float>(30000)})
        check(values, k);
    }
  }
}

TEST_CASE("equal histories give equal positions") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto one = make_selector(entry);
    const auto other = make_selector(entry);
    for (const std::size_t n : {20000U, 5U, 9000U, 0U, 20000U}) {
      const auto values = normal_values(n, n);
      CHECK(selected(*one, values, n / 10) == selected(*other, values, n / 10));
    }
  }
}

TEST_CASE("a value that is not finite stops the run and is named") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto selector = make_selector(entry);
    for (const float bad : {nan, -nan, infinity, -infinity}) {
      for (const std::size_t n : {1U, 100U, 50000U}) {
        for (const std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
          auto values = normal_values(n, n);
          values[place] = bad;
          Indices indices;
          const std::string value = std::isnan(bad) ? "" : bad > 0 ? "inf" : "-inf";
          const std::string said = "value " + std::to_string(place) + " of " + std::to_string(n) + " is " + value;
          for (const std::size_t k : {std::size_t{0}, kept_count(0.1, n), n}) {
            CHECK_THROWS_AS(selector->select(values, k, indices), DivergenceError);
            CHECK_THROWS_WITH(selector->select(values, k, indices), doctest::Contains(said.c_str()));
          }
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

TEST_CASE("more than there is cannot be asked for") {
  for (const SelectorEntry& entry : selectors()) {
    CAPTURE(entry.name);
    const auto selector = make_selector(entry);
    Indices indices;
    CHECK_THROWS_AS(selector->select(normal_values(1, 3), 4, indices), std::logic_error);
  }
}

TEST_CASE("the density is the section's, 0.1 where it is silent, 1 where there is none") {
  for (const std::string name : {"topk", "chunked", "sampled", "mstopk", "random"}) {
    CAPTURE(name);
    CHECK(make_selector("name: " + name)->density() == 0.1);
    CHECK(make_selector("{name: " + name + ", density: 0.25}")->density() == 0.25);
    for (const std::string density : {"0", "-0.1", "1.01", ".nan", "all"})
      CHECK_THROWS_AS(make_selector("{name: " + name + ", density: " + density + "}"), ConfigError);
  }
  for (const std::string name : {"dense", "threshold"}) {
    CAPTURE(name);
    CHECK(make_selector("name: " + name)->density() == 1.0);
    CHECK_THROWS_AS(make_selector("{name: " + name + ", density: 0.25}"), ConfigError);
  }
}

}  // namespace
}  // namespace hearsay::selector_contract_test

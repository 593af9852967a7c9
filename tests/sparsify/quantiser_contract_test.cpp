// Laws that every quantiser keeps.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "base/error.hpp"
#include "tests/sparsify/quantised.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::quantiser_contract_test {
namespace {

using namespace test;

double largest_magnitude(std::span<const float> values) {
  double most = 0.0;
  for (const float value : values) most = std::max<double>(most, std::abs(value));
  return most;
}

/// A bound that is larger than the values says nothing.
void check_error(const std::string& yaml, std::span<const float> values, std::span<const std::size_t> group_ends) {
  const auto quantiser = make_quantiser(yaml);
  const auto q = quantised(*quantiser, values, group_ends);
  std::size_t first = 0;
  for (const std::size_t end : group_ends) {
    const auto group = values.subspan(first, end - first);
    for (std::size_t i = first; i < end; ++i) {
      CAPTURE(values[i]);
      const double bound = quantiser->error_bound(group, values[i]);
      CHECK(std::abs(static_cast<double>(values[i]) - q[i]) <= bound * (1 + 1e-6));
      CHECK(bound <= largest_magnitude(group) * (1 + 0x1p-8));
    }
    first = end;
  }
}

std::vector<float> small_integers(std::uint64_t seed, std::size_t n, int largest_magnitude) {
  Random random(seed);
  std::vector<float> values(n);
  const auto choices = static_cast<std::uint64_t>(2 * largest_magnitude + 1);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random.below(choices)) - largest_magnitude);
  return values;
}

TEST_CASE("every quantiser says what it is, under a name of its own, and builds from that name") {
  std::set<std::string_view> names;
  for (const QuantiserEntry& entry : quantisers()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
      CHECK_FALSE(text.empty());
  }
  CHECK(names.size() >= 5);
  for (const std::string& yaml : quantiser_choices()) CHECK_NOTHROW(make_quantiser(yaml));
}

TEST_CASE("values come back within the stated error, in groups of any length") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    for (const std::size_t n : {1U, 2U, 7U, 8U, 9U, 1000U}) {
      const std::size_t whole[]{n};
      check_error(yaml, normal_values(n, n), whole);
      check_error(yaml, distinct_values(n, n), whole);
      check_error(yaml, nearly_equal_values(n, n, 3), whole);
    }
    const std::size_t groups[]{1, 3, 10, 17, 18, 50};
    check_error(yaml, normal_values(9, 50), groups);
  }
}

TEST_CASE("no values take no bytes, zeros stay zeros") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    CHECK(quantiser->bound(0, 0) == 0);
    CHECK(quantised(*quantiser, {}).empty());
    CHECK(quantised(*quantiser, std::vector<float>(9)) == std::vector<float>(9));
  }
}

TEST_CASE("bytes grow with values and with groups") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    for (std::size_t count = 0; count < 20; ++count) {
      CHECK(quantiser->bound(count, 1) <= quantiser->bound(count + 1, 1));
      CHECK(quantiser->bound(count, 1) <= quantiser->bound(count, 2));
      CHECK(quantiser->bound(count + 1, 1) <= 4 * (count + 1) + 8);
    }
  }
}

TEST_CASE("exact quantisers keep every bit, and only they say so") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto values = any_values(3, 1000);
    const auto quantiser = make_quantiser(yaml);
    const auto q = quantised(*quantiser, values);
    const bool same = std::ranges::equal(
        values, q, [](float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); });
    CHECK(quantiser->exact() == same);
  }
}

TEST_CASE("no value changes its sign") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    for (const auto& values : {normal_values(1, 999), distinct_values(2, 999), any_values(3, 999)}) {
      const auto q = quantised(*quantiser, values);
      for (std::size_t i = 0; i < q.size(); ++i) {
        if (values[i] != 0.0F) CHECK((q[i] == 0.0F || std::signbit(q[i]) == std::signbit(values[i])));
      }
    }
  }
}

TEST_CASE("none and fp16 of what they made is what they made") {
  for (const std::string yaml : {"{name: none}", "{name: fp16}"}) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    const auto once = quantised(*quantiser, any_values(5, 5000));
    CHECK(quantised(*quantiser, once) == once);
  }
}

TEST_CASE("of small integers nothing is lost: v = q(v) + (v − q(v)), bit for bit") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    CHECK(rc::check(yaml, [&](std::uint64_t seed) {
      const auto values = small_integers(seed, 1 + seed % 300, 1000);
      const auto q = quantised(*quantiser, values);
      for (std::size_t i = 0; i < q.size(); ++i) {
        const float rest = values[i] - q[i];
        RC_ASSERT(q[i] + rest == values[i]);
        RC_ASSERT(static_cast<double>(q[i]) + rest == static_cast<double>(values[i]));  // the remainder was not rounded
      }
    }));
  }
}

TEST_CASE("sums over ranks lose nothing either: Σ v = Σ q(v) + Σ (v − q(v)), in single precision") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    CHECK(rc::check(yaml, [&](std::uint64_t seed) {
      const std::size_t n = 50 + seed % 300;
      std::vector<float> sum(n), sent(n), kept(n);
      for (std::uint64_t rank = 0; rank < 8; ++rank) {
        const auto values = small_integers(scramble(seed) + rank, n, 100);
        const auto q = quantised(*quantiser, values);
        for (std::size_t i = 0; i < n; ++i) {
          sum[i] += values[i];
          sent[i] += q[i];
          kept[i] += values[i] - q[i];
        }
      }
      for (std::size_t i = 0; i < n; ++i) RC_ASSERT(sent[i] + kept[i] == sum[i]);
    }));
  }
}

TEST_CASE("groups do not know each other") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    const auto values = normal_values(6, 37);
    const std::size_t ends[]{10, 11, 37};
    const auto together = quantised(*quantiser, values, ends);
    std::vector<float> apart;
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      const auto part = quantised(*quantiser, std::span(values).subspan(first, end - first));
      apart.insert(apart.end(), part.begin(), part.end());
      first = end;
    }
    CHECK(together == apart);
  }
}

TEST_CASE("the largest and the smallest floats stay finite") {
  const float largest = std::numeric_limits<float>::max(), tiny = std::numeric_limits<float>::denorm_min();
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    for (const auto& values : {std::vector<float>{largest, -largest, 1.0F}, std::vector<float>{tiny, -tiny},
                               std::vector<float>{190 * tiny, -tiny}, any_values(7, 3000)}) {
      for (const float q : quantised(*quantiser, values)) CHECK(std::isfinite(q));
    }
  }
}

TEST_CASE("any bytes are finite values or refused") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    CHECK(rc::check(yaml, [&](std::uint64_t seed) {
      Random random(seed);
      std::vector<std::size_t> ends;
      for (std::size_t g = random.below(4); g > 0; --g)
        ends.push_back((ends.empty() ? 0 : ends.back()) + 1 + random.below(9));
      std::vector<float> values(ends.empty() ? 0 : ends.back());
      const std::size_t right = quantiser->bound(values.size(), ends.size());
      const Bytes bytes = random_bytes(random, random.below(4) == 0 ? random.below(80) : right);
      try {
        quantiser->decode(bytes, ends, values);
        RC_ASSERT((quantiser->step_rule() ? bytes.size() <= right : bytes.size() == right));
        for (const float value : values) RC_ASSERT(std::isfinite(value));
        RC_CLASSIFY(true, "taken");
      } catch (const CommunicationError&) {
      }
    }));
  }
}

TEST_CASE("too little room is a bug and found") {
  for (const std::string& yaml : quantiser_choices()) {
    CAPTURE(yaml);
    const auto quantiser = make_quantiser(yaml);
    const std::size_t ends[]{9};
    Bytes out(quantised_bytes(*quantiser, normal_values(1, 9), ends).size() - 1);
    CHECK_THROWS_AS(quantiser->encode(normal_values(1, 9), ends, 0.0F, out), std::logic_error);
  }
}

}  // namespace
}  // namespace hearsay::quantiser_contract_test

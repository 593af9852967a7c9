// What is particular to each quantiser.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "tests/sparsify/quantised.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::quantisers_test {
namespace {

using namespace test;

float fp16(float value) { return quantised(*make_quantiser("name: fp16"), std::span(&value, 1)).front(); }

/// The finite halves ≥ 0, in order, from their definition.
std::vector<double> halves() {
  std::vector<double> all;
  for (int bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = bits >> 10, digits = bits & 0x3ff;
    all.push_back(exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25));
  }
  return all;
}

double mean_square_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum / static_cast<double>(a.size());
}

/// x rounded by `round` to 12 significant bits, by the definition.
double with_12_bits(double x, double (*round)(double)) {
  int exponent = 0;
  const double digits = round(4096.0 * std::frexp(x, &exponent));
  return std::ldexp(digits / 4096.0, exponent);
}

/// A side's sum in the order that sides.hpp gives, step by step.
double in_order(std::span<const double> magnitudes) {
  const auto in_pairs = [](std::vector<double> sums) {
    for (std::size_t width = partial_sums / 2; width > 0; width /= 2)
      for (std::size_t t = 0; t < width; ++t) sums[t] += sums[t + width];
    return sums[0];
  };
  std::vector<double> of_group(partial_sums);
  for (std::size_t first = 0, piece = 0; first < magnitudes.size(); first += values_of_piece, ++piece) {
    std::vector<double> sums(partial_sums);
    for (std::size_t t = 0; t < partial_sums; ++t) {
      for (std::size_t j = 0; j < values_of_partial_sum; ++j) {
        const std::size_t i = first + 256 * (t / 16) + t % 16 + 16 * j;
        if (i < magnitudes.size()) sums[t] += magnitudes[i];
      }
    }
    of_group[piece % partial_sums] += in_pairs(sums);
  }
  return in_pairs(of_group);
}

TEST_CASE("levels have 12 significant bits, to nearest or up") {
  std::vector<float> values = normal_values(1, 1000);
  values.insert(values.end(),
                {0.0F, 0x1.001p0F, 0x1.003p0F, 0x1.ffep0F, 0x1.fffp0F, 0x1p-126F, 0x1p-149F, 0x1.8p-140F});
  for (const float value : values) {
    for (const double x : {double{std::abs(value)}, std::abs(value) / 127.0, std::abs(value) * 1e-40}) {
      CHECK(level(x) == static_cast<float>(with_12_bits(x, std::nearbyint)));
      const float above = level_above(x), up = static_cast<float>(with_12_bits(x, std::ceil));
      CHECK(above == (up < x ? std::nextafter(up, std::numeric_limits<float>::infinity()) : up));
    }
  }
  CHECK(level(std::numeric_limits<float>::max()) == 0x1.ffep127F);
}

TEST_CASE("sums of both sides of a group have one order, in vector code and out of it") {
  for (const std::size_t n : {1U, 5U, 16U, 17U, 255U, 256U, 257U, 4000U, 8192U, 8193U, 20'001U, 513U * 8192U}) {
    CAPTURE(n);
    std::vector<float> values = normal_values(n, n);
    for (std::size_t i = 0; i < n; i += 7) values[i] *= 1e9F;  // so that sums are rounded
    std::vector<double> sides[2] = {std::vector<double>(n), std::vector<double>(n)};
    double seconds = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool second = values[i] < -0.5F || values[i] > 0.8F;
      sides[second ? 1 : 0][i] = std::abs(values[i]);
      seconds += second ? 1.0 : 0.0;
    }
    const Sides sums = sum_sides(values, -0.5F, 0.8F);
    CHECK(sums.sums[0] == in_order(sides[0]));
    CHECK(sums.sums[1] == in_order(sides[1]));
    CHECK(sums.counts[0] == static_cast<double>(n) - seconds);
    CHECK(sums.counts[1] == seconds);
  }
}

TEST_CASE("fp16: every half is itself, in both signs") {
  for (const double half : halves()) {
    const auto x = static_cast<float>(half);
    CHECK(fp16(x) == x);
    CHECK(fp16(-x) == -x);
  }
  CHECK(std::signbit(fp16(-0.0F)));
}

TEST_CASE("fp16: between two halves the nearer one, in the middle the even one") {
  const auto all = halves();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto middle = static_cast<float>((all[i] + all[i + 1]) / 2);
    const auto low = static_cast<float>(all[i]), high = static_cast<float>(all[i + 1]);
    CHECK(fp16(middle) == (i % 2 == 0 ? low : high));
    CHECK(fp16(std::nextafter(middle, 0.0F)) == low);
    CHECK(fp16(std::nextafter(middle, 1e9F)) == high);
  }
}

TEST_CASE("fp16: beyond the largest half it is the largest half") {
  for (const float x : {65504.0F, 65519.0F, 65520.0F, 65536.0F, 1e30F, std::numeric_limits<float>::max()}) {
    CHECK(fp16(x) == 65504.0F);
    CHECK(fp16(-x) == -65504.0F);
  }
}

TEST_CASE("fp16: little endian; infinities and NaN are refused") {
  const auto quantiser = make_quantiser("name: fp16");
  const std::vector<float> values{1.0F, -2.0F};
  const std::size_t ends[]{2};
  CHECK(quantised_bytes(*quantiser, values, ends) == bytes_of({0x00, 0x3c, 0x00, 0xc0}));
  std::vector<float> back(2);
  for (const auto& bad : {bytes_of({0, 0, 0x00, 0x7c}), bytes_of({0, 0, 0x01, 0xfc})})
    CHECK_THROWS_AS(quantiser->decode(bad, ends, back), CommunicationError);
}

TEST_CASE("a level that is not finite or below zero is refused") {
  const std::size_t ends[]{1};
  std::vector<float> back(1);
  for (const std::string name : {"int8", "fp4", "two_bit", "one_bit"}) {
    CAPTURE(name);
    const auto quantiser = make_quantiser("name: " + name);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -1.0F}) {
      for (std::size_t at = 0; at + 4 < quantiser->bound(1, 1); at += 4) {
        Bytes bytes(quantiser->bound(1, 1));
        CHECK_NOTHROW(quantiser->decode(bytes, ends, back));
        std::memcpy(bytes.data() + at, &bad, sizeof bad);
        CHECK_THROWS_AS(quantiser->decode(bytes, ends, back), CommunicationError);
      }
    }
  }
}

TEST_CASE("int8: a scale of a 127th of the largest, and integers") {
  const std::vector<float> values{127, -127, 1, 0, -64.4F, 0.4F};
  CHECK(quantised(*make_quantiser("name: int8"), values) == std::vector<float>{127, -127, 1, 0, -64, 0});
  const std::size_t ends[]{3};
  CHECK(quantised_bytes(*make_quantiser("name: int8"), std::span(values).first(3), ends) ==
        bytes_of({0, 0, 0x80, 0x3f, 127, 0x81, 1}));
}

TEST_CASE("fp4: the nearest of 0, the largest and six halvings of it") {
  const std::vector<float> levels{64, -64, 32, 16, 8, 4, 2, 1, -1, 0};
  CHECK(quantised(*make_quantiser("name: fp4"), levels) == levels);
  for (float high = 64; high > 1; high /= 2) {
    const float middle = 0.75F * high;
    const std::vector<float> around{64, std::nextafter(middle, 0.0F), -middle, std::nextafter(middle, high)};
    CHECK(quantised(*make_quantiser("name: fp4"), around) == std::vector<float>{64, high / 2, -high, high});
  }
  CHECK(quantised(*make_quantiser("name: fp4"), std::vector<float>{64, 0.49F, -0.51F}) ==
        std::vector<float>{64, 0, -1});
}

TEST_CASE("fp4: two values a byte, the first in its low half; groups may meet in one") {
  const std::vector<float> values{64, -1, 0.1F, 2, 2};
  const std::size_t ends[]{3, 5};
  CHECK(quantised_bytes(*make_quantiser("name: fp4"), values, ends) ==
        bytes_of({0, 0, 0x80, 0x42, 0, 0, 0, 0x40, 0x97, 0x70, 0x07}));
  CHECK(make_quantiser("name: fp4")->bound(1001, 1) == 4 + 501);
}

TEST_CASE("fp4: what was left over shrinks by two thirds with every send") {
  const auto quantiser = make_quantiser("name: fp4");
  std::vector<float> rest = normal_values(4, 777);
  for (int send = 0; send < 8; ++send) {
    float most = 0.0F, left = 0.0F;
    for (const float x : rest) most = std::max(most, std::abs(x));
    const auto q = quantised(*quantiser, rest);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= q[i], left = std::max(left, std::abs(rest[i]));
    CHECK(left <= most / 3 * (1 + 1e-5F));
  }
}

TEST_CASE("one_bit: the smallest magnitude, zeros apart") {
  const auto quantiser = make_quantiser("{name: one_bit, centre: threshold}");
  CHECK(quantised(*quantiser, std::vector<float>{5, -3, 9, -4}) == std::vector<float>{3, -3, 3, -3});
  CHECK(quantised(*quantiser, std::vector<float>{5, -3, 0}) == std::vector<float>{3, -3, 3});
  CHECK(quantiser->bound(1000, 1) == 4 + 125);
  CHECK_FALSE(quantiser->by_rows());
}

TEST_CASE("one_bit: the means of both signs keep the sum") {
  const auto quantiser = make_quantiser("{name: one_bit, centre: mean}");
  CHECK(quantised(*quantiser, std::vector<float>{5, -3, 9, -4}) == std::vector<float>{7, -3.5F, 7, -3.5F});
  CHECK(quantised(*quantiser, std::vector<float>{5, 3}) == std::vector<float>{4, 4});
  CHECK(quantised(*quantiser, std::vector<float>{-5, -3}) == std::vector<float>{-4, -4});
  CHECK(quantiser->bound(1000, 1) == 8 + 125);
  CHECK_FALSE(quantiser->by_rows());
  CHECK(make_quantiser("{name: one_bit, centre: row_mean}")->by_rows());
  CHECK_THROWS_AS(make_quantiser("{name: one_bit, centre: median}"), ConfigError);
}

TEST_CASE("one_bit: signs lie in the bits, after the levels of all groups") {
  const auto quantiser = make_quantiser("{name: one_bit, centre: threshold}");
  const std::vector<float> values{1, -1, -2};
  const std::size_t ends[]{2, 3};
  CHECK(quantised_bytes(*quantiser, values, ends) == bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0b110}));
}

TEST_CASE("two_bit: two clusters are told apart") {
  const auto quantiser = make_quantiser("name: two_bit");
  CHECK(quantised(*quantiser, std::vector<float>{1, -100, -3, 104, 2, 1, 3}) ==
        std::vector<float>{2, -102, -2, 102, 2, 2, 2});
  CHECK(quantised(*quantiser, std::vector<float>{-7, 7, 7}) == std::vector<float>{-7, 7, 7});
  CHECK(quantiser->bound(1000, 1) == 8 + 250);
}

TEST_CASE("two_bit: the nearer of two magnitudes, and better than one") {
  const auto two_bit = make_quantiser("name: two_bit");
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const auto& values :
         {normal_values(seed, 777), distinct_values(seed, 777), nearly_equal_values(seed, 777, 1)}) {
      const auto q = quantised(*two_bit, values);
      float low = std::numeric_limits<float>::max(), high = 0.0F;
      double mean = 0.0;
      for (const float x : q) low = std::min(low, std::abs(x)), high = std::max(high, std::abs(x));
      for (const float x : values) mean += std::abs(x) / static_cast<double>(values.size());
      std::vector<float> one(values.size());
      for (std::size_t i = 0; i < q.size(); ++i) {
        const float magnitude = std::abs(values[i]);
        CHECK(std::abs(q[i]) == (std::abs(magnitude - low) <= std::abs(high - magnitude) ? low : high));
        one[i] = std::copysign(static_cast<float>(mean), values[i]);
      }
      CHECK(low < high);
      CHECK(mean_square_error(values, q) < 0.6 * mean_square_error(values, one));
    }
  }
}

}  // namespace
}  // namespace hearsay::quantisers_test

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "apps/datasets/digit_strokes.hpp"
#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"

namespace synthetic_digits_test {

using namespace hearsay;
using test::load;

namespace {

std::vector<std::uint8_t> image(const ImageSet& set, std::size_t i) {
  const auto first = set.pixels.begin() + static_cast<std::ptrdiff_t>(i * set.image_size());
  return {first, first + static_cast<std::ptrdiff_t>(set.image_size())};
}

std::set<std::vector<std::uint8_t>> distinct_images(const ImageSet& set) {
  std::set<std::vector<std::uint8_t>> images;
  for (std::size_t i = 0; i < set.size(); ++i) images.insert(image(set, i));
  return images;
}

}  // namespace

TEST_CASE("synthetic_digits: equal seeds give equal bytes, different seeds do not") {
  const auto a = load("synthetic_digits", "{train_size: 200, test_size: 50}", 3);
  const auto b = load("synthetic_digits", "{train_size: 200, test_size: 50}", 3);
  const auto c = load("synthetic_digits", "{train_size: 200, test_size: 50}", 4);
  CHECK(a.train.pixels == b.train.pixels);
  CHECK(a.test.pixels == b.test.pixels);
  CHECK(a.train.labels == b.train.labels);
  for (std::size_t i = 0; i < a.train.size(); ++i) CHECK(image(a.train, i) != image(c.train, i));
}

TEST_CASE("synthetic_digits: a larger set begins with the smaller one") {
  const auto small = load("synthetic_digits", "{train_size: 70, test_size: 10}");
  const auto large = load("synthetic_digits", "{train_size: 300, test_size: 20}");
  CHECK(std::equal(small.train.pixels.begin(), small.train.pixels.end(), large.train.pixels.begin()));
  CHECK(std::equal(small.test.pixels.begin(), small.test.pixels.end(), large.test.pixels.begin()));
}

TEST_CASE("synthetic_digits: classes are balanced to one, and no image occurs twice in training and test set") {
  const auto data = load("synthetic_digits", "{train_size: 2003, test_size: 501}");
  CHECK(data.train.size() == 2003);
  CHECK(data.train.pixels.size() == 2003 * 784);
  for (const ImageSet* set : {&data.train, &data.test}) {
    std::array<std::size_t, 10> counts{};
    for (const auto label : set->labels) ++counts.at(label);
    CHECK(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()) <= 1);
  }
  auto images = distinct_images(data.train);
  CHECK(images.size() == 2003);
  images.merge(distinct_images(data.test));
  CHECK(images.size() == 2003 + 501);
}

TEST_CASE("synthetic_digits: difficulty 0 leaves one image a style, and no image belongs to two digits") {
  const auto data = load("synthetic_digits", "{train_size: 600, test_size: 1, difficulty: 0}");
  const auto styles = digit_styles();
  std::size_t total = 0;
  std::array<std::set<std::vector<std::uint8_t>>, 10> per_digit;
  for (std::size_t i = 0; i < data.train.size(); ++i) per_digit[data.train.labels[i]].insert(image(data.train, i));
  for (std::size_t digit = 0; digit < 10; ++digit) {
    CHECK(per_digit[digit].size() == styles[digit].size());
    total += styles[digit].size();
  }
  CHECK(distinct_images(data.train).size() == total);
}

TEST_CASE("synthetic_digits: mean and standard deviation are those of the default set") {
  const auto data = load("synthetic_digits", "{}");
  CHECK(data.train.size() == 12000);
  CHECK(data.test.size() == 2000);
  double sum = 0.0, squares = 0.0;
  for (const auto byte : data.train.pixels) {
    const double x = byte / 255.0;
    sum += x;
    squares += x * x;
  }
  const double n = static_cast<double>(data.train.pixels.size()), mean = sum / n;
  CHECK(std::abs(mean - data.mean[0]) < 1e-3);
  CHECK(std::abs(std::sqrt(squares / n - mean * mean) - data.stddev[0]) < 1e-3);
}

TEST_CASE("synthetic_digits: sizes and difficulty outside their range are refused") {
  for (const char* yaml : {"{train_size: 0}", "{test_size: -3}", "{difficulty: 2.5}", "{difficulty: -1}"}) {
    CAPTURE(yaml);
    CHECK_THROWS_AS(load("synthetic_digits", yaml), ConfigError);
  }
}

TEST_CASE("flatten: a spline goes through its points, and through a straight line's points is that line") {
  const Stroke bent{true, {{0, 0}, {0.3, 0.7}, {0.9, 0.1}, {1, 1}}};
  const auto corners = flatten(bent, 5);
  CHECK(corners.size() == 3 * 5 + 1);
  for (std::size_t i = 0; i < bent.points.size(); ++i) {
    CHECK(corners[5 * i].x == doctest::Approx(bent.points[i].x));
    CHECK(corners[5 * i].y == doctest::Approx(bent.points[i].y));
  }
  for (const auto& p : flatten({true, {{0, 0}, {1, 2}, {2, 4}, {3, 6}}}, 8)) CHECK(p.y == doctest::Approx(2 * p.x));
  CHECK(flatten({false, bent.points}, 5).size() == bent.points.size());
}

}  // namespace synthetic_digits_test

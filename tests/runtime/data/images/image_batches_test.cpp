#include "runtime/data/image_batches.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/error.hpp"

namespace image_batches_test {

using namespace hearsay;

namespace {

constexpr int padding = 4;
constexpr std::array<float, 2> none_mean{0.0F, 0.0F}, unit{1.0F, 1.0F};

/// Two-channel images whose pixels are all different: 1, 2, …
ImageSet numbered(int height, int width, std::size_t count) {
  ImageSet set{.channels = 2, .height = height, .width = width, .classes = 10, .pixels = {}, .labels = {}};
  set.labels.resize(count);
  for (std::size_t i = 0; i < count * set.image_size(); ++i)
    set.pixels.push_back(static_cast<std::uint8_t>(1 + i % 255));
  return set;
}

/// The pixel at (y, x) of channel c as a batch without normalisation has it; black outside.
float padded(const ImageSet& set, std::size_t image, int c, int y, int x) {
  if (y < 0 || y >= set.height || x < 0 || x >= set.width) return 0.0F;
  const auto at = image * set.image_size() + static_cast<std::size_t>((c * set.height + y) * set.width + x);
  return static_cast<float>(set.pixels[at]) / 255.0F;
}

/// Which window of the padded image `batch` is: 0 to 161 for (down, right, mirrored), or −1.
int window_of(const ImageSet& set, std::size_t image, std::span<const float> batch) {
  for (int window = 0; window < 9 * 9 * 2; ++window) {
    const int down = window / 18 - padding, right = window / 2 % 9 - padding;
    bool same = true;
    for (int i = 0; same && i < static_cast<int>(batch.size()); ++i) {
      const int c = i / (set.height * set.width), y = i / set.width % set.height, x = i % set.width;
      const int from = window % 2 == 1 ? set.width - 1 - x : x;
      same = batch[static_cast<std::size_t>(i)] == padded(set, image, c, y + down, from + right);
    }
    if (same) return window;
  }
  return -1;
}

}  // namespace

TEST_CASE("fill: every byte becomes (byte/255 − mean)/stddev of its channel, in the order of the indices") {
  const auto set = numbered(5, 7, 8);
  const std::array mean{0.25F, 0.5F}, stddev{0.5F, 2.0F};
  const std::vector<std::uint32_t> indices{6, 0, 6};
  std::vector<float> out(indices.size() * set.image_size());
  Random random(1);
  fill(set, mean, stddev, indices, out, Augmentation::none, random);
  for (std::size_t b = 0; b < indices.size(); ++b) {
    for (std::size_t i = 0; i < set.image_size(); ++i) {
      const std::size_t c = i / 35;
      const float value = static_cast<float>(set.pixels[indices[b] * set.image_size() + i]) / 255.0F;
      CHECK(out[b * set.image_size() + i] == doctest::Approx((value - mean[c]) / stddev[c]));
    }
  }
}

TEST_CASE("fill: a whole set normalised with its own moments has mean 0 and variance 1") {
  const auto set = numbered(17, 30, 4);
  double sum = 0.0, squares = 0.0;
  for (const auto byte : set.pixels) {
    sum += byte / 255.0;
    squares += byte / 255.0 * byte / 255.0;
  }
  const double n = static_cast<double>(set.pixels.size()), average = sum / n;
  const std::array mean{static_cast<float>(average), static_cast<float>(average)};
  const auto deviation = static_cast<float>(std::sqrt(squares / n - average * average));
  const std::array stddev{deviation, deviation};
  std::vector<float> out(set.pixels.size());
  const std::vector<std::uint32_t> indices{0, 1, 2, 3};
  Random random(1);
  fill(set, mean, stddev, indices, out, Augmentation::none, random);
  double out_sum = 0.0, out_squares = 0.0;
  for (const float x : out) {
    out_sum += x;
    out_squares += static_cast<double>(x) * x;
  }
  CHECK(std::abs(out_sum / n) < 1e-4);
  CHECK(out_squares / n == doctest::Approx(1.0).epsilon(1e-4));
}

TEST_CASE("fill: without augmentation nothing is drawn") {
  const auto set = numbered(3, 3, 2);
  std::vector<float> out(set.image_size());
  Random used(9), untouched(9);
  fill(set, none_mean, unit, std::vector<std::uint32_t>{1}, out, Augmentation::none, used);
  CHECK(used.uniform() == untouched.uniform());
}

TEST_CASE("fill: pad_crop_flip gives a window of the padded image, all channels alike, and every window occurs") {
  const auto set = numbered(9, 11, 3);  // taller and wider than the padding, so that no window is all black
  std::vector<float> out(2 * set.image_size());
  Random random(3);
  std::set<int> seen;
  for (int trial = 0; trial < 2000; ++trial) {
    fill(set, none_mean, unit, std::vector<std::uint32_t>{2, 1}, out, Augmentation::pad_crop_flip, random);
    const auto batch = std::span<const float>(out);
    const int first = window_of(set, 2, batch.first(set.image_size()));
    const int second = window_of(set, 1, batch.last(set.image_size()));
    REQUIRE(first >= 0);
    REQUIRE(second >= 0);
    seen.insert({first, second});
  }
  CHECK(seen.size() == 9 * 9 * 2);
}

TEST_CASE("fill: padding is black before normalisation, also where the window misses a small image") {
  const ImageSet set{.channels = 1, .height = 2, .width = 2, .classes = 2, .pixels = {0, 0, 0, 0}, .labels = {0}};
  const std::array mean{0.25F}, stddev{0.5F};
  std::vector<float> out(4);
  Random random(4);
  for (int trial = 0; trial < 200; ++trial) {
    fill(set, mean, stddev, std::vector<std::uint32_t>{0}, out, Augmentation::pad_crop_flip, random);
    CHECK(out == std::vector<float>(4, -0.5F));
  }
}

TEST_CASE("fill: sizes that do not fit are bugs") {
  const auto set = numbered(3, 3, 2);
  Random random(1);
  std::vector<float> out(set.image_size()), small(set.image_size() - 1);
  const std::vector<std::uint32_t> good{1}, bad{2};
  const std::array one{1.0F};
  CHECK_THROWS_AS(fill(set, none_mean, unit, bad, out, Augmentation::none, random), std::logic_error);
  CHECK_THROWS_AS(fill(set, none_mean, unit, good, small, Augmentation::none, random), std::logic_error);
  CHECK_THROWS_AS(fill(set, one, unit, good, out, Augmentation::none, random), std::logic_error);
}

TEST_CASE("augmentation is read from the configuration") {
  const auto read = [](const char* yaml) {
    Config config = Config::from_text(yaml);
    const auto augmentation = read_augmentation(config);
    config.document().throw_if_invalid();
    return augmentation;
  };
  CHECK(read("{}") == Augmentation::none);
  CHECK(read("{augmentation: pad_crop_flip}") == Augmentation::pad_crop_flip);
  CHECK_THROWS_AS(read("{augmentation: mixup}"), ConfigError);
}

}  // namespace image_batches_test

// What is checked of a user's own images before anything is trained on them.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "apps/datasets/datasets.hpp"
#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"

namespace dataset_test {

using namespace hearsay;

namespace {

ImageSet images(std::size_t count) {
  ImageSet set{.channels = 2, .height = 4, .width = 3, .classes = 5, .pixels = {}, .labels = {}};
  for (std::size_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::uint8_t>(i % 5));
  set.pixels.resize(count * set.image_size());
  return set;
}

ImageData whole() {
  return {.name = "own",
          .train = images(7),
          .test = images(3),
          .mean = {0.5F, 0.5F},
          .stddev = {0.5F, 0.5F},
          .augmentable = false};
}

/// The message about `whole()` after this has been done to it; "" if there is none.
std::string refusal(const std::function<void(ImageData& data)>& spoil) {
  ImageData data = whole();
  spoil(data);
  try {
    require_whole(data);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("data that fit together are taken, whatever their source") {
  CHECK(refusal([](ImageData&) {}) == "");
  CHECK_NOTHROW(require_whole(test::load("synthetic_digits", "{train_size: 20, test_size: 10}")));
}

TEST_CASE("every pixel, label and number that would be read past its end or divided by is refused by name") {
  for (const auto& [set, name] : {std::pair{&ImageData::train, "training"}, {&ImageData::test, "test"}}) {
    const auto spoilt = [set = set](const std::function<void(ImageSet&)>& spoil) {
      return refusal([&](ImageData& data) { spoil(data.*set); });
    };
    for (const int pixels : {-12, -1, 1}) {  // -12: a row and a channel short of an image
      const std::string text = spoilt([&](ImageSet& s) { s.pixels.resize(s.pixels.size() + pixels); });
      CHECK(says(text, "'own'"));
      CHECK(says(text, std::string("the ") + name + " set has "));
      CHECK(says(text, "2 x 4 x 3"));
    }
    CHECK(says(spoilt([](ImageSet& s) { s.labels[1] = 5; }), std::string("label 5 of ") + name + " image 1"));
    CHECK(says(spoilt([](ImageSet& s) { s.labels.clear(), s.pixels.clear(); }), "is empty"));
    CHECK(says(spoilt([](ImageSet& s) { s.height = 0; }), "at least 1"));
    CHECK(says(spoilt([](ImageSet& s) { s.height = 3, s.width = 4; }), "but test images of"));
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(says(refusal([](ImageData& data) { data.mean.pop_back(); }), "1 values of mean for 2 channels"));
  CHECK(says(refusal([](ImageData& data) { data.stddev.push_back(1); }), "3 values of stddev"));
  CHECK(says(refusal([&](ImageData& data) { data.mean[1] = nan; }), "mean"));
  for (const float stddev : {0.0F, -1.0F, nan, std::numeric_limits<float>::infinity()})
    CHECK(says(refusal([&](ImageData& data) { data.stddev[0] = stddev; }), "stddev"));
}

}  // namespace dataset_test

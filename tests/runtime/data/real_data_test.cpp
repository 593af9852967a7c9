// Facts about the published files, checked where HEARSAY_DATA says they are.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tests/runtime/data/load.hpp"

namespace real_data_test {

using namespace hearsay;

namespace {

bool have(const char* dataset) {
  const char* const root = std::getenv("HEARSAY_DATA");
  if (root != nullptr && std::filesystem::is_directory(std::filesystem::path(root) / dataset)) return true;
  MESSAGE("not checked: HEARSAY_DATA is not set or has no folder " << std::string(dataset));
  return false;
}

std::array<int, 10> histogram(const ImageSet& set) {
  std::array<int, 10> counts{};
  for (const auto label : set.labels) ++counts[label];
  return counts;
}

/// Mean and standard deviation of pixel/255 in channel c.
std::array<double, 2> moments(const ImageSet& set, int c) {
  double sum = 0.0, squares = 0.0;
  const auto plane = static_cast<std::size_t>(set.height) * set.width;
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t j = 0; j < plane; ++j) {
      const double x = set.pixels[i * set.image_size() + static_cast<std::size_t>(c) * plane + j] / 255.0;
      sum += x;
      squares += x * x;
    }
  }
  const double n = static_cast<double>(set.size() * plane), mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean)};
}

}  // namespace

TEST_CASE("real MNIST: sizes, label counts, mean and standard deviation as published") {
  if (!have("mnist")) return;
  const auto data = test::load("mnist", "{}");
  CHECK(data.train.size() == 60000);
  CHECK(data.test.size() == 10000);
  CHECK(histogram(data.train) == std::array{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  CHECK(histogram(data.test) == std::array{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  const auto [mean, stddev] = moments(data.train, 0);
  CHECK(std::abs(mean - data.mean[0]) < 5e-5);
  CHECK(std::abs(stddev - data.stddev[0]) < 5e-5);
}

TEST_CASE("real CIFAR-10: batch 1 and the test set; moments near those of all five") {
  if (!have("cifar10")) return;
  const auto data = test::load("cifar10", "{batches: [1]}");
  CHECK(data.train.size() == 10000);
  CHECK(histogram(data.test) == std::array{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  for (int c = 0; c < 3; ++c) {
    const auto [mean, stddev] = moments(data.train, c);
    CHECK(std::abs(mean - data.mean[static_cast<std::size_t>(c)]) < 0.005);
    CHECK(std::abs(stddev - data.stddev[static_cast<std::size_t>(c)]) < 0.005);
  }
}

}  // namespace real_data_test

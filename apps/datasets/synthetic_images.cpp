// synthetic_images: coloured gratings, a class each, under noise: images of any size and number of classes, drawn when
// they are wanted, so that there may be many and none is in memory.
//   value[c, y, x] = colour_c · sin(2π (u x + v y)/side + phase) + noise · n,  n of variance 1
// Waves (u, v) and colours are the class's own, phases and noise the image's.
// Cost: no messages; 4 bytes a training image, its class; about 10 ns a value.
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"

namespace hearsay {
namespace {

constexpr int channels = 3;

struct Settings {
  std::int64_t side, classes;
  double noise;
  std::uint64_t seed;
};

class Gratings final : public Examples {
 public:
  Gratings(const Settings& settings, std::size_t size, std::string stream)
      : settings_(settings), size_(size), stream_(std::move(stream)) {}
  std::size_t size() const override { return size_; }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const override {
    const auto pixels = std::get<std::span<float>>(inputs);
    const auto labels = std::get<std::span<std::int64_t>>(targets);
    const auto image = static_cast<std::size_t>(channels * settings_.side * settings_.side);
    if (labels.size() != indices.size() || pixels.size() != indices.size() * image)
      throw std::logic_error("synthetic images: the tensors do not have the batch's size");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= size_) throw std::logic_error("there is no image " + std::to_string(indices[i]));
      labels[i] = indices[i] % settings_.classes;
      draw(indices[i], labels[i], pixels.subspan(i * image, image));
    }
  }

 private:
  void draw(std::uint32_t index, std::int64_t label, std::span<float> out) const {
    Random kind(stream_seed(settings_.seed, "synthetic_images.class", static_cast<std::uint64_t>(label)));
    Random own(stream_seed(settings_.seed, stream_, index));
    const auto noise = static_cast<float>(settings_.noise * std::sqrt(3.0));  // uniform in [−√3, √3]: variance 1
    constexpr double turn = 2.0 * std::numbers::pi;
    const double u = kind.uniform(-6.0, 6.0) / static_cast<double>(settings_.side);
    const double v = kind.uniform(0.0, 6.0) / static_cast<double>(settings_.side);
    const double phase = turn * own.uniform();
    auto* at = out.data();
    for (int c = 0; c < channels; ++c) {
      const double colour = kind.uniform(-1.0, 1.0);
      for (std::int64_t y = 0; y < settings_.side; ++y)
        for (std::int64_t x = 0; x < settings_.side; ++x)
          *at++ = static_cast<float>(
                      colour * std::sin(turn * (u * static_cast<double>(x) + v * static_cast<double>(y)) + phase)) +
                  noise * static_cast<float>(own.uniform(-1.0, 1.0));
    }
  }

  Settings settings_;
  std::size_t size_;
  std::string stream_;
};

class SyntheticImages final : public DatasetSource {
 public:
  SyntheticImages(Config& config, std::uint64_t seed)
      : settings_{.side = config.integer("side", 32, Range::between(8, 4096), "pixels of a side; three channels"),
                  .classes = config.integer("classes", 10, Range::between(2, 1e6), "kinds of gratings"),
                  .noise = config.real("noise", 0.5, Range::between(0.0, 100.0),
                                       "its standard deviation; colours are in "
                                       "[-1, 1]"),
                  .seed = seed},
        train_size_(config.integer("train_size", 10'000, Range::between(1, 1e8), "training images")),
        test_size_(config.integer("test_size", 1000, Range::between(1, 4e9), "test images")) {}

  DataSet load() const override {
    std::vector<std::uint32_t> groups(static_cast<std::size_t>(train_size_));
    for (std::size_t i = 0; i < groups.size(); ++i)
      groups[i] = static_cast<std::uint32_t>(i % static_cast<std::size_t>(settings_.classes));
    std::vector<Metric> metrics{accuracy_metric()};
    if (settings_.classes > 10) metrics.push_back(top5_accuracy_metric());
    return {.name = "synthetic_images",
            .shape = {.inputs = {.sizes = {channels, settings_.side, settings_.side}},
                      .targets = {.element = TensorShape::Element::classes, .classes = settings_.classes}},
            .train = gratings(train_size_, "synthetic_images.train"),
            .test = gratings(test_size_, "synthetic_images.test"),
            .shares = {.size = groups.size(),
                       .groups = std::move(groups),
                       .count = static_cast<std::uint32_t>(settings_.classes)},
            .metrics = std::move(metrics)};
  }

 private:
  std::shared_ptr<const Examples> gratings(std::int64_t size, const std::string& stream) const {
    return std::make_shared<Gratings>(settings_, static_cast<std::size_t>(size), stream);
  }

  Settings settings_;
  std::int64_t train_size_, test_size_;
};

}  // namespace

DatasetEntry synthetic_images_entry() {
  return {.name = "synthetic_images",
          .summary = "coloured gratings of any size and number of classes, drawn when they are wanted",
          .equation = "value[c, y, x] = colour_c sin(2 pi (u x + v y)/side + phase) + noise n",
          .cost = "no communication; 4 bytes a training image, about 10 ns a value",
          .citation = "",
          .make = [](Config& config, std::uint64_t seed) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<SyntheticImages>(config, seed);
          }};
}

}  // namespace hearsay

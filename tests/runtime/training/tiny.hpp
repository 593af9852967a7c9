#pragma once
// Small random images, and LibTorch's own view of them.
// LibTorch has a macro CHECK of its own: include this before doctest, whose CHECK then holds.
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "apps/models/models.hpp"
#include "base/random.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay::test {

inline ImageSet random_images(int count, int channels, int side, std::uint64_t seed, int classes = 10) {
  Random random(seed);
  ImageSet set{.channels = channels, .height = side, .width = side, .classes = classes, .pixels = {}, .labels = {}};
  set.pixels.resize(set.image_size() * static_cast<std::size_t>(count));
  for (auto& pixel : set.pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  for (int i = 0; i < count; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(classes))));
  }
  return set;
}

inline ImageData random_image_data(int train, int test, int channels, int side) {
  return {.name = "random",
          .train = random_images(train, channels, side, 1),
          .test = random_images(test, channels, side, 2),
          .mean = std::vector<float>(static_cast<std::size_t>(channels), 0.5F),
          .stddev = std::vector<float>(static_cast<std::size_t>(channels), 0.25F)};
}

inline Batch random_batch(int count, int channels, int side, std::uint64_t seed = 3) {
  auto generator = at::detail::createCPUGenerator(seed);
  return {torch::randn({count, channels, side, side}, generator, torch::kFloat32),
          torch::randint(0, 10, {count}, generator, torch::kInt64)};
}

/// The model of the table with this section `model:`.
inline Model model_named(const std::string& section, int channels, int side, int classes = 10) {
  Config config = Config::from_text(section);
  const auto& entry = chosen_entry(models(), config, "mnist_cnn", "the model");
  const auto factory = entry.make(config);
  config.document().throw_if_invalid();
  return factory->make(shape_of(random_images(1, channels, side, 1, classes)));
}

inline std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

/// All parameters of a module, one after the other, as LibTorch reads them.
inline std::vector<float> parameters_of(const torch::nn::Module& module) {
  std::vector<float> all;
  for (const torch::Tensor& p : module.parameters()) {
    const torch::Tensor flat = p.detach().contiguous();
    all.insert(all.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return all;
}

}  // namespace hearsay::test

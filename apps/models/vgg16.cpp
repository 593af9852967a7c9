// vgg16: thirteen 3×3 convolutions in five stages with a pooling after each, and three dense layers.
//   stages: 2 × 64, 2 × 128, 3 × 256, 3 × 512, 3 × 512 maps;  classifier: fc4096 relu dropout fc4096 relu dropout fc
// simonyan2015very, table 1, column D.
// Deviates from the paper in: weights start from LibTorch's default distribution. Images of less than 64 pixels a side
// have the form for CIFAR-10 (liu2015very): a batch normalisation after every convolution, and one dense
// layer.
// Cost: for three channels and 1,000 classes 138,357,544 parameters in 32 segments, of which the first dense layer has
// 102,764,544; for 32×32 images and 10 classes 14,728,266 in 54, and 8,448 running means and variances.
#include <torch/torch.h>

#include <vector>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

using torch::nn::Dropout;
using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::Sequential;

Sequential vgg16_features(int channels, bool small) {
  const std::vector<std::vector<int>> stages{{64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  Sequential layers;
  int in = channels;
  for (const auto& stage : stages) {
    for (const int out : stage) {
      layers->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)));
      if (small) layers->push_back(torch::nn::BatchNorm2d(out));
      layers->push_back(ReLU());
      in = out;
    }
    layers->push_back(torch::nn::MaxPool2d(2));
  }
  return layers;
}

Sequential vgg16_classifier(int classes, bool small, double dropout) {
  if (small) return Sequential(Linear(512, classes));
  return Sequential(Linear(512 * 7 * 7, 4096), ReLU(), Dropout(dropout), Linear(4096, 4096), ReLU(), Dropout(dropout),
                    Linear(4096, classes));
}

class Vgg16Impl : public torch::nn::Module {
 public:
  Vgg16Impl(const ImageShape& images, double dropout)
      : side_(is_small(images) ? 1 : 7),
        features_(register_module("features", vgg16_features(images.channels, is_small(images)))),
        classifier_(register_module("classifier", vgg16_classifier(images.classes, is_small(images), dropout))) {}
  torch::Tensor forward(const torch::Tensor& x) {  // (B, channels, H, W) → (B, classes)
    return classifier_->forward(torch::adaptive_avg_pool2d(features_->forward(x), {side_, side_}).flatten(1));
  }

 private:
  int side_;
  Sequential features_, classifier_;
};

class Vgg16Factory final : public ModelFactory {
 public:
  explicit Vgg16Factory(Config& model) : dropout_(read_dropout(model)) {}
  Model make(const ExampleShape& shape) const override {
    const ImageShape images = require_images(shape, "vgg16", 0, 0, 0);
    require_side(images, "vgg16", 32);
    return Model(std::make_shared<Vgg16Impl>(images, dropout_));
  }

 private:
  double dropout_;
};

}  // namespace

ModelEntry vgg16_model() {
  return {.name = "vgg16",
          .summary = "13 convolutions and three dense layers, or one for small images; from 32x32 on",
          .equation =
              "2 x conv64 pool 2 x conv128 pool 3 x conv256 pool 3 x conv512 pool 3 x conv512 pool fc4096 fc4096 fc",
          .cost = "138,357,544 parameters in 32 segments for 1,000 classes; 14,728,266 in 54 for 32x32 images",
          .citation = "simonyan2015very, table 1, column D; liu2015very",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<Vgg16Factory>(model); }};
}

}  // namespace hearsay

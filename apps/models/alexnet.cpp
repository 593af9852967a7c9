// alexnet: five convolutions and three dense layers.
//   conv64 11×11/4 pool conv192 5×5 pool conv384 conv256 conv256 pool;  dropout fc4096 relu dropout fc4096 relu fc
// krizhevsky2014one, the network for one GPU, which libraries call AlexNet (krizhevsky2012imagenet has 96 and
// 256 maps in the first two layers, in two groups).
// Deviates from the paper in: no local response normalisation, as usual; weights start from LibTorch's default
// distribution. Images of less than 64 pixels a side are pooled 2×2 and have one dense layer, as usual for CIFAR-10.
// Cost: for three channels and 1,000 classes 61,100,840 parameters in 16 segments; for 32×32 images and 10 classes
// 2,472,266 in 12.
#include <torch/torch.h>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

using torch::nn::Conv2dOptions;
using torch::nn::Dropout;
using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::Sequential;

torch::nn::Conv2d convolution(int in, int out, int kernel, int stride, int padding) {
  return torch::nn::Conv2d(Conv2dOptions(in, out, kernel).stride(stride).padding(padding));
}

Sequential alexnet_features(int channels, bool small) {
  const auto pool = [small] { return torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(small ? 2 : 3).stride(2)); };
  return Sequential(convolution(channels, 64, 11, 4, small ? 5 : 2), ReLU(), pool(), convolution(64, 192, 5, 1, 2),
                    ReLU(), pool(), convolution(192, 384, 3, 1, 1), ReLU(), convolution(384, 256, 3, 1, 1), ReLU(),
                    convolution(256, 256, 3, 1, 1), ReLU(), pool());
}

Sequential alexnet_classifier(int classes, bool small, double dropout) {
  if (small) return Sequential(Linear(256, classes));
  return Sequential(Dropout(dropout), Linear(256 * 6 * 6, 4096), ReLU(), Dropout(dropout), Linear(4096, 4096), ReLU(),
                    Linear(4096, classes));
}

class AlexNetImpl : public torch::nn::Module {
 public:
  AlexNetImpl(const ImageShape& images, double dropout)
      : side_(is_small(images) ? 1 : 6),
        features_(register_module("features", alexnet_features(images.channels, is_small(images)))),
        classifier_(register_module("classifier", alexnet_classifier(images.classes, is_small(images), dropout))) {}
  torch::Tensor forward(const torch::Tensor& x) {  // (B, channels, H, W) → (B, classes)
    return classifier_->forward(torch::adaptive_avg_pool2d(features_->forward(x), {side_, side_}).flatten(1));
  }

 private:
  int side_;
  Sequential features_, classifier_;
};

class AlexNetFactory final : public ModelFactory {
 public:
  explicit AlexNetFactory(Config& model) : dropout_(read_dropout(model)) {}
  Model make(const ExampleShape& shape) const override {
    const ImageShape images = require_images(shape, "alexnet", 0, 0, 0);
    require_side(images, "alexnet", 32);
    return Model(std::make_shared<AlexNetImpl>(images, dropout_));
  }

 private:
  double dropout_;
};

}  // namespace

ModelEntry alexnet_model() {
  return {
      .name = "alexnet",
      .summary = "five convolutions and three dense layers, or one for small images; from 32x32 on",
      .equation = "conv64 pool conv192 pool conv384 conv256 conv256 pool fc4096 fc4096 fc",
      .cost = "61,100,840 parameters in 16 segments for 1,000 classes; 2,472,266 in 12 for 32x32 images",
      .citation = "krizhevsky2014one; krizhevsky2012imagenet",
      .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<AlexNetFactory>(model); }};
}

}  // namespace hearsay

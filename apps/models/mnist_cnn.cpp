// mnist_cnn: the small convolutional network of the EventGraD experiments on MNIST.
//   conv 1→10 3×3, maxpool 2, relu, conv 10→20 3×3, dropout of whole maps, maxpool 2, relu, fc 500→50, relu, dropout,
//   fc 50→10
// ghosh2020eventgrad and its released code (the network that is compiled there).
// Deviates from the paper in: returns logits; the log-softmax is part of the loss.
// Cost: 27,480 parameters in 8 segments for 28×28 images in 10 classes.
#include <torch/torch.h>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

class MnistCnnImpl : public torch::nn::Module {
 public:
  MnistCnnImpl(int classes, double dropout)
      : conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 10, 3)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(10, 20, 3)))),
        map_dropout_(register_module("map_dropout", torch::nn::Dropout2d(dropout))),
        fc1_(register_module("fc1", torch::nn::Linear(500, 50))),
        dropout_(register_module("dropout", torch::nn::Dropout(dropout))),
        fc2_(register_module("fc2", torch::nn::Linear(50, classes))) {}

  torch::Tensor forward(torch::Tensor x) {                           // (B, 1, 28, 28)
    x = torch::relu(torch::max_pool2d(conv1_(x), 2));                // (B, 10, 13, 13)
    x = torch::relu(torch::max_pool2d(map_dropout_(conv2_(x)), 2));  // (B, 20, 5, 5)
    return fc2_(dropout_(torch::relu(fc1_(x.flatten(1)))));
  }

 private:
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Dropout2d map_dropout_;
  torch::nn::Linear fc1_;
  torch::nn::Dropout dropout_;
  torch::nn::Linear fc2_;
};

class MnistCnnFactory final : public ModelFactory {
 public:
  explicit MnistCnnFactory(Config& model) : dropout_(read_dropout(model)) {}
  Model make(const ExampleShape& shape) const override {
    const ImageShape images = require_images(shape, "mnist_cnn", 1, 28, 28);
    return Model(std::make_shared<MnistCnnImpl>(images.classes, dropout_));
  }

 private:
  double dropout_;
};

}  // namespace

ModelEntry mnist_cnn_model() {
  return {
      .name = "mnist_cnn",
      .summary = "two convolutions, two dense layers, dropout; for 28x28 images with one channel",
      .equation = "conv10 pool relu conv20 dropout pool relu fc50 relu dropout fc10",
      .cost = "27,480 parameters in 8 segments",
      .citation = "ghosh2020eventgrad, released code",
      .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<MnistCnnFactory>(model); }};
}

}  // namespace hearsay

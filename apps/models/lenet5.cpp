// lenet5: LeCun's convolutional network for digits.
//   conv →6 5×5, tanh, avgpool 2, conv 6→16 5×5, tanh, avgpool 2, fc 400→120, tanh, fc 120→84, tanh, fc 84→10
// lecun1998gradient, section II.B.
// Deviates from the paper in: every map of the second convolution sees all six maps; pooling has no weights; plain
// tanh; a dense last layer instead of radial basis functions. 28×28 images are padded by 2, 32×32 ones are taken as
// they are.
// Cost: 61,706 parameters in 10 segments for one channel (62,006 for three) and 10 classes.
#include <torch/torch.h>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

class LeNet5Impl : public torch::nn::Module {
 public:
  LeNet5Impl(int channels, int padding, int classes)
      : conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 6, 5).padding(padding)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)))),
        fc1_(register_module("fc1", torch::nn::Linear(400, 120))),
        fc2_(register_module("fc2", torch::nn::Linear(120, 84))),
        fc3_(register_module("fc3", torch::nn::Linear(84, classes))) {}

  torch::Tensor forward(torch::Tensor x) {             // (B, channels, 28 or 32, …)
    x = torch::avg_pool2d(torch::tanh(conv1_(x)), 2);  // (B, 6, 14, 14)
    x = torch::avg_pool2d(torch::tanh(conv2_(x)), 2);  // (B, 16, 5, 5)
    return fc3_(torch::tanh(fc2_(torch::tanh(fc1_(x.flatten(1))))));
  }

 private:
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Linear fc1_, fc2_, fc3_;
};

class LeNet5Factory final : public ModelFactory {
 public:
  Model make(const ExampleShape& shape) const override {
    const auto& sizes = shape.inputs.sizes;
    const bool small = sizes.size() == 3 && sizes[1] == 28;
    const ImageShape images = require_images(shape, "lenet5", 0, small ? 28 : 32, small ? 28 : 32);
    return Model(std::make_shared<LeNet5Impl>(images.channels, small ? 2 : 0, images.classes));
  }
};

}  // namespace

ModelEntry lenet5_model() {
  return {.name = "lenet5",
          .summary = "LeCun's network for digits; for 28x28 and 32x32 images",
          .equation = "conv6 tanh pool conv16 tanh pool fc120 tanh fc84 tanh fc10",
          .cost = "61,706 parameters in 10 segments for one channel",
          .citation = "lecun1998gradient, section II.B",
          .make = [](Config&) -> std::unique_ptr<ModelFactory> { return std::make_unique<LeNet5Factory>(); }};
}

}  // namespace hearsay

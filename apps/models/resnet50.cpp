// resnet50: a residual network of bottleneck blocks, 3, 4, 6 and 3 of them in four stages.
//   block: y = relu(x' + bn(conv1×1(relu(bn(conv3×3(relu(bn(conv1×1(x)))))))), x' = x or, where the shape changes,
//   bn(conv1×1(x));  widths 64, 128, 256, 512, four times as many maps out
// he2016deep, table 1 (option B).
// Deviates from the paper in: a stage's stride is in the 3×3 convolution, as in today's libraries (goyal2017large,
// section 5.1); weights start from LibTorch's default. Images of less than 64 pixels a side are not reduced
// before the first stage: a 3×3 convolution of stride 1, no pooling.
// Cost: for three channels and 1,000 classes 25,557,032 parameters in 161 segments, and 53,120 running means and
// variances; 4.1·10⁹ multiplications for an image of 224×224.
#include <torch/torch.h>

#include <array>
#include <cstdint>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Sequential;

constexpr int expansion = 4;

Conv2d bottleneck_convolution(int in, int out, int kernel, int stride) {
  return Conv2d(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

class BottleneckImpl : public torch::nn::Module {
 public:
  BottleneckImpl(int in, int width, int stride)
      : layers_(register_module(
            "layers",
            Sequential(bottleneck_convolution(in, width, 1, 1), BatchNorm2d(width), torch::nn::ReLU(),
                       bottleneck_convolution(width, width, 3, stride), BatchNorm2d(width), torch::nn::ReLU(),
                       bottleneck_convolution(width, expansion * width, 1, 1), BatchNorm2d(expansion * width)))) {
    if (in != expansion * width || stride != 1)
      projection_ = register_module("projection", Sequential(bottleneck_convolution(in, expansion * width, 1, stride),
                                                             BatchNorm2d(expansion * width)));
  }
  torch::Tensor forward(const torch::Tensor& x) {  // (B, in, H, W) → (B, 4·width, H/stride, W/stride)
    return torch::relu(layers_->forward(x) + (projection_ ? projection_->forward(x) : x));
  }

 private:
  Sequential layers_, projection_{nullptr};
};
TORCH_MODULE(Bottleneck);

Sequential stem(int channels, bool small) {
  if (small) return Sequential(bottleneck_convolution(channels, 64, 3, 1), BatchNorm2d(64), torch::nn::ReLU());
  return Sequential(bottleneck_convolution(channels, 64, 7, 2), BatchNorm2d(64), torch::nn::ReLU(),
                    torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
}

class ResNet50Impl : public torch::nn::Module {
 public:
  ResNet50Impl(int channels, int classes, bool small)
      : stem_(register_module("stem", stem(channels, small))),
        stages_(register_module("stages", Sequential())),
        fc_(register_module("fc", torch::nn::Linear(512 * expansion, classes))) {
    constexpr std::array<int, 4> widths{64, 128, 256, 512}, blocks{3, 4, 6, 3};
    int in = 64;
    for (std::size_t stage = 0; stage < widths.size(); ++stage) {
      for (int b = 0; b < blocks[stage]; ++b) {
        stages_->push_back(Bottleneck(in, widths[stage], b == 0 && stage > 0 ? 2 : 1));
        in = expansion * widths[stage];
      }
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {  // (B, channels, H, W) → (B, classes)
    return fc_(torch::adaptive_avg_pool2d(stages_->forward(stem_->forward(x)), {1, 1}).flatten(1));
  }

 private:
  Sequential stem_, stages_;
  torch::nn::Linear fc_;
};

class ResNet50Factory final : public ModelFactory {
 public:
  Model make(const ExampleShape& shape) const override {
    const ImageShape images = require_images(shape, "resnet50", 0, 0, 0);
    return Model(std::make_shared<ResNet50Impl>(images.channels, images.classes, is_small(images)));
  }
};

}  // namespace

ModelEntry resnet50_model() {
  return {.name = "resnet50",
          .summary = "50 layers in four stages of bottleneck blocks; for images of any size",
          .equation = "conv64 pool, 3 x block64, 4 x block128, 6 x block256, 3 x block512, mean, fc",
          .cost = "25,557,032 parameters in 161 segments for 1,000 classes",
          .citation = "he2016deep, table 1; goyal2017large, section 5.1",
          .make = [](Config&) -> std::unique_ptr<ModelFactory> { return std::make_unique<ResNet50Factory>(); }};
}

}  // namespace hearsay

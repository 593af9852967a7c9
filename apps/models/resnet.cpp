// resnet20 and resnet18 for 32×32 images: residual networks of basic blocks.
//   block: y = relu(x' + bn(conv3×3(relu(bn(conv3×3(x)))))), x' = x or, where the shape changes, its shortcut
// he2016deep: resnet20 is section 4.2 with n = 3 (stages of 16, 32, 64 maps, shortcuts of option A: every second pixel,
// new maps zero, no weights); resnet18 is table 1 (64, 128, 256, 512 maps, 2 blocks each, 1×1 projections, option B).
// Deviates from the paper in: resnet18 starts with a 3×3 convolution of stride 1 and has no first pooling, as usual for
// 32×32 images; weights start from LibTorch's default (uniform) distribution, not from the paper's normal one.
// `norm: group` (wu2018group, groups of 8 maps) in place of bn: batch statistics of a rank that sees a few classes only
// fit no other rank's images, and no exchange mends that (hsieh2020noniid, section 5).
// Cost, for three channels and 10 classes: resnet20 269,722 parameters in 59 segments and 1,376 running means and
// variances; resnet18 11,173,962 in 62 and 9,600.
#include <torch/torch.h>

#include <string>
#include <vector>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

torch::nn::Conv2d convolution(int in, int out, int kernel, int stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

enum class Shortcut { zero_padding, projection };
enum class Norm { batch, group };

torch::nn::AnyModule normalisation(Norm norm, int maps) {
  if (norm == Norm::batch) return torch::nn::AnyModule(torch::nn::BatchNorm2d(maps));
  return torch::nn::AnyModule(torch::nn::GroupNorm(maps / 8, maps));
}

class ResidualBlockImpl : public torch::nn::Module {
 public:
  ResidualBlockImpl(int in, int out, int stride, Shortcut shortcut, Norm norm)
      : new_maps_(out - in),
        stride_(stride),
        conv1_(register_module("conv1", convolution(in, out, 3, stride))),
        bn1_(normalisation(norm, out)),
        conv2_(convolution(out, out, 3, 1)),
        bn2_(normalisation(norm, out)) {
    register_module("bn1", bn1_.ptr());
    register_module("conv2", conv2_);
    register_module("bn2", bn2_.ptr());
    if (shortcut == Shortcut::zero_padding || (in == out && stride == 1)) return;
    projection_ =
        register_module("projection", torch::nn::Sequential(convolution(in, out, 1, stride), normalisation(norm, out)));
  }

  torch::Tensor forward(const torch::Tensor& x) {  // (B, in, H, W) → (B, out, H/stride, W/stride)
    const torch::Tensor y = bn2_.forward(conv2_(torch::relu(bn1_.forward(conv1_(x)))));
    return torch::relu(y + shortcut_of(x));
  }

 private:
  torch::Tensor shortcut_of(const torch::Tensor& x) {
    if (projection_) return projection_->forward(x);
    if (new_maps_ == 0) return x;
    const auto pixels = x.slice(2, 0, x.size(2), stride_).slice(3, 0, x.size(3), stride_);
    return torch::constant_pad_nd(pixels, {0, 0, 0, 0, new_maps_ / 2, new_maps_ - new_maps_ / 2});
  }

  int new_maps_, stride_;
  torch::nn::Conv2d conv1_;
  torch::nn::AnyModule bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::AnyModule bn2_;
  torch::nn::Sequential projection_{nullptr};
};
TORCH_MODULE(ResidualBlock);

class ResNetImpl : public torch::nn::Module {
 public:
  ResNetImpl(int channels, const std::vector<int>& widths, int blocks, Shortcut shortcut, Norm norm, int classes)
      : conv_(register_module("conv", convolution(channels, widths.front(), 3, 1))),
        bn_(normalisation(norm, widths.front())),
        fc_(widths.back(), classes) {
    register_module("bn", bn_.ptr());
    register_module("stages", stages_);
    register_module("fc", fc_);
    int in = widths.front();
    for (const int width : widths) {
      for (int b = 0; b < blocks; ++b) {
        stages_->push_back(ResidualBlock(in, width, b == 0 && width != widths.front() ? 2 : 1, shortcut, norm));
        in = width;
      }
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {  // (B, channels, 32, 32)
    const torch::Tensor maps = stages_->forward(torch::relu(bn_.forward(conv_(x))));
    return fc_(torch::adaptive_avg_pool2d(maps, {1, 1}).flatten(1));
  }

 private:
  torch::nn::Conv2d conv_;
  torch::nn::AnyModule bn_;
  torch::nn::Sequential stages_;
  torch::nn::Linear fc_;
};

class ResNetFactory final : public ModelFactory {
 public:
  ResNetFactory(std::string name, std::vector<int> widths, int blocks, Shortcut shortcut, Norm norm)
      : name_(std::move(name)), widths_(std::move(widths)), blocks_(blocks), shortcut_(shortcut), norm_(norm) {}
  Model make(const ExampleShape& shape) const override {
    const ImageShape images = require_images(shape, name_, 0, 32, 32);
    return Model(std::make_shared<ResNetImpl>(images.channels, widths_, blocks_, shortcut_, norm_, images.classes));
  }

 private:
  std::string name_;
  std::vector<int> widths_;
  int blocks_;
  Shortcut shortcut_;
  Norm norm_;
};

Norm read_norm(Config& config) {
  return config.choice(
             "norm", "batch", {"batch", "group"},
             "by the statistics of a rank's own batch, or of groups of 8 maps of each image: then a rank that "
             "sees few classes has no statistics of its own") == "group"
             ? Norm::group
             : Norm::batch;
}

}  // namespace

ModelEntry resnet20_model() {
  return {.name = "resnet20",
          .summary = "20 layers in three stages, shortcuts without weights; for 32x32 images",
          .equation = "conv16, 3 x block16, 3 x block32, 3 x block64, mean, fc10",
          .cost = "269,722 parameters in 59 segments",
          .citation = "he2016deep, section 4.2, option A",
          .make = [](Config& config) -> std::unique_ptr<ModelFactory> {
            return std::make_unique<ResNetFactory>("resnet20", std::vector{16, 32, 64}, 3, Shortcut::zero_padding,
                                                   read_norm(config));
          }};
}

ModelEntry resnet18_model() {
  return {.name = "resnet18",
          .summary = "18 layers in four stages, projections; for 32x32 images",
          .equation = "conv64, 2 x block64, 2 x block128, 2 x block256, 2 x block512, mean, fc10",
          .cost = "11,173,962 parameters in 62 segments",
          .citation = "he2016deep, table 1, option B",
          .make = [](Config& config) -> std::unique_ptr<ModelFactory> {
            return std::make_unique<ResNetFactory>("resnet18", std::vector{64, 128, 256, 512}, 2, Shortcut::projection,
                                                   read_norm(config));
          }};
}

}  // namespace hearsay

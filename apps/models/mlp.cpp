// mlp: dense layers with relu between them, for images of any size.
//   x_{l+1} = relu(A_l x_l + b_l), the last one without relu
// rumelhart1986learning.
// Deviates from the paper in: relu instead of a sigmoid.
// Cost: Σ_l (n_l + 1)·n_{l+1} parameters in 2 segments a layer; 101,770 in 4 for 28×28 images, hidden: [128], 10
// classes. hidden: [] is a linear model.
#include <torch/torch.h>

#include <vector>

#include "apps/models/models.hpp"
#include "runtime/training/model.hpp"

namespace hearsay {
namespace {

class Factory final : public ModelFactory {
 public:
  explicit Factory(Config& model)
      : hidden_(model.integers("hidden", {128}, Range::at_least(1), "width of every hidden layer; []: linear model")) {}
  Model make(const ImageSet& images) const override {
    torch::nn::Sequential layers(torch::nn::Flatten{});
    auto width = static_cast<std::int64_t>(images.image_size());
    for (const std::int64_t next : hidden_) {
      layers->push_back(torch::nn::Linear(width, next));
      layers->push_back(torch::nn::ReLU());
      width = next;
    }
    layers->push_back(torch::nn::Linear(width, images.classes));
    return Model(layers);
  }

 private:
  std::vector<std::int64_t> hidden_;
};

}  // namespace

ModelEntry mlp_model() {
  return {.name = "mlp",
          .summary = "dense layers with relu; for images of any size",
          .equation = "x_(l+1) = relu(A_l x_l + b_l)",
          .cost = "101,770 parameters in 4 segments for 28x28 images and hidden: [128]",
          .citation = "rumelhart1986learning",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<Factory>(model); }};
}

}  // namespace hearsay

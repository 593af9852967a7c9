// mlp: dense layers with relu between them, for images of any size and rows of numbers, to classes or numbers.
//   x_{l+1} = relu(A_l x_l + b_l), the last one without relu; with layer_norm: relu(norm(A_l x_l + b_l))
// rumelhart1986learning; layer normalisation: ba2016layer, which gradients of all layers on one scale need when one
// threshold drops them (aji2017sparse).
// Deviates from the paper in: relu instead of a sigmoid.
// Cost: Σ_l (n_l + 1)·n_{l+1} parameters in 2 segments a layer; 101,770 in 4 for 28×28 images, hidden: [128], 10
// classes. hidden: [] is a linear model. layer_norm adds two segments of n_l floats a hidden layer.
#include <torch/torch.h>

#include <vector>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

/// (targets…) numbers, or (targets…, C) logits.
std::vector<std::int64_t> output_sizes(const TensorShape& targets) {
  std::vector<std::int64_t> sizes = targets.sizes;
  if (targets.element == TensorShape::Element::classes) sizes.push_back(targets.classes);
  return sizes;
}

class MlpFactory final : public ModelFactory {
 public:
  explicit MlpFactory(Config& model)
      : hidden_(
            model.integers("hidden", {128}, Range::between(1, 1e6), "width of every hidden layer; []: linear model")),
        layer_norm_(model.flag("layer_norm", false, "normalise every hidden layer before its relu")) {}
  Model make(const ExampleShape& shape) const override {
    require_numbers(shape, "mlp");
    torch::nn::Sequential layers(torch::nn::Flatten{});
    auto width = static_cast<std::int64_t>(shape.inputs.count());
    for (const std::int64_t next : hidden_) {
      layers->push_back(torch::nn::Linear(width, next));
      if (layer_norm_) layers->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({next})));
      layers->push_back(torch::nn::ReLU());
      width = next;
    }
    layers->push_back(
        torch::nn::Linear(width, static_cast<std::int64_t>(shape.targets.count()) * outputs_of(shape.targets)));
    if (shape.targets.element == TensorShape::Element::numbers || !shape.targets.sizes.empty())
      layers->push_back(torch::nn::Functional([sizes = output_sizes(shape.targets)](const torch::Tensor& x) {
        std::vector<std::int64_t> of_batch{x.size(0)};
        of_batch.insert(of_batch.end(), sizes.begin(), sizes.end());
        return x.view(of_batch);
      }));
    return Model(layers);
  }

 private:
  std::vector<std::int64_t> hidden_;
  bool layer_norm_;
};

}  // namespace

ModelEntry mlp_model() {
  return {.name = "mlp",
          .summary = "dense layers with relu; for images of any size and rows of numbers",
          .equation = "x_(l+1) = relu(A_l x_l + b_l); with layer_norm: relu(norm(A_l x_l + b_l))",
          .cost = "101,770 parameters in 4 segments for 28x28 images and hidden: [128]",
          .citation = "rumelhart1986learning; ba2016layer",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<MlpFactory>(model); }};
}

}  // namespace hearsay

// transformer: a decoder that foretells the next token of a sequence, of GPT-2's blocks.
//   x = E[token] + P[position]
//   x ← x + A(norm(x)),  x ← x + M(norm(x))     in each of L layers;  logits = norm(x) Eᵀ, or norm(x) Hᵀ
//   A: heads of softmax(Q Kᵀ/√(d/h) + mask) V, which see no later token, and a projection;  M: d → 4d, gelu, → d
// radford2019language; vaswani2017attention.
// Deviates from the paper in: nothing but the sizes. Weights start from N(0, 0.02), those that end in the residual
// stream from N(0, 0.02/√(2L)), biases at 0.
// Cost: V d + T d + L (12 d² + 13 d) + 2 d parameters (and V d more for an untied H) in 12 L + 4 segments, for V tokens
// and sequences of T. GPT-2's own sizes: 124,439,808. Forward: 2 L (12 d² + T d) + 2 V d multiplications a token.
#include <torch/torch.h>

#include <cmath>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

using torch::nn::Embedding;
using torch::nn::LayerNorm;
using torch::nn::Linear;

struct TransformerSizes {
  std::int64_t layers, heads, width;
  double dropout;
  bool tied;
};

LayerNorm norm(std::int64_t width) { return LayerNorm(torch::nn::LayerNormOptions({width})); }

class TransformerBlockImpl : public torch::nn::Module {
 public:
  TransformerBlockImpl(const TransformerSizes& sizes, std::int64_t length)
      : heads_(sizes.heads),
        later_(torch::ones({length, length}, torch::kBool).triu(1)),
        norm1_(register_module("norm1", norm(sizes.width))),
        qkv_(register_module("qkv", Linear(sizes.width, 3 * sizes.width))),
        projection_(register_module("projection", Linear(sizes.width, sizes.width))),
        norm2_(register_module("norm2", norm(sizes.width))),
        up_(register_module("up", Linear(sizes.width, 4 * sizes.width))),
        down_(register_module("down", Linear(4 * sizes.width, sizes.width))),
        dropout_(register_module("dropout", torch::nn::Dropout(sizes.dropout))) {
    const double into_stream = 0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers));
    start(qkv_, 0.02), start(projection_, into_stream), start(up_, 0.02), start(down_, into_stream);
  }

  torch::Tensor forward(torch::Tensor x) {  // (B, T, d)
    x = x + dropout_(projection_(attended(norm1_(x))));
    return x + dropout_(down_(torch::gelu(up_(norm2_(x)), "tanh")));
  }

 private:
  static void start(Linear& layer, double deviation) {
    const torch::NoGradGuard no_gradient;
    layer->weight.normal_(0.0, deviation);
    layer->bias.zero_();
  }

  torch::Tensor attended(const torch::Tensor& x) {
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2), of_head = width / heads_;
    const auto parts = qkv_(x).view({batch, length, 3, heads_, of_head}).permute({2, 0, 3, 1, 4});  // (3, B, h, T, d/h)
    const torch::Tensor mask = later_.to(x.device()).slice(0, 0, length).slice(1, 0, length);
    torch::Tensor scores =
        torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(of_head));
    scores = dropout_(scores.masked_fill(mask, -INFINITY).softmax(-1));
    return torch::matmul(scores, parts[2]).transpose(1, 2).reshape({batch, length, width});
  }

  std::int64_t heads_;
  torch::Tensor later_;  // (T, T): true where the column's token comes after the row's
  LayerNorm norm1_;
  Linear qkv_, projection_;
  LayerNorm norm2_;
  Linear up_, down_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(TransformerBlock);

class TransformerImpl : public torch::nn::Module {
 public:
  TransformerImpl(const TransformerSizes& sizes, std::int64_t vocabulary, std::int64_t length)
      : tokens_(register_module("tokens", Embedding(vocabulary, sizes.width))),
        positions_(register_module("positions", Embedding(length, sizes.width))),
        dropout_(register_module("dropout", torch::nn::Dropout(sizes.dropout))),
        blocks_(register_module("blocks", torch::nn::Sequential())),
        norm_(register_module("norm", norm(sizes.width))) {
    const torch::NoGradGuard no_gradient;
    for (std::int64_t l = 0; l < sizes.layers; ++l) blocks_->push_back(TransformerBlock(sizes, length));
    if (!sizes.tied)
      head_ = register_module("head", Linear(torch::nn::LinearOptions(sizes.width, vocabulary).bias(false)));
    tokens_->weight.normal_(0.0, 0.02);
    positions_->weight.normal_(0.0, 0.02);
    if (head_) head_->weight.normal_(0.0, 0.02);
  }

  torch::Tensor forward(const torch::Tensor& tokens) {  // (B, T) → (B, T, V)
    const torch::Tensor at = torch::arange(tokens.size(1), tokens.options());
    const torch::Tensor x = norm_(blocks_->forward(dropout_(tokens_(tokens) + positions_(at))));
    return torch::linear(x, head_ ? head_->weight : tokens_->weight);
  }

 private:
  Embedding tokens_, positions_;
  torch::nn::Dropout dropout_;
  torch::nn::Sequential blocks_;
  LayerNorm norm_;
  Linear head_{nullptr};
};

class TransformerFactory final : public ModelFactory {
 public:
  explicit TransformerFactory(Config& model)
      : sizes_{.layers = model.integer("layers", 4, Range::between(1, 1000), "L, the number of blocks"),
               .heads = model.integer("heads", 4, Range::between(1, 1000), "h, which share the width"),
               .width = model.integer("width", 128, Range::between(1, 1e6), "d, of the residual stream"),
               .dropout = read_dropout(model, 0.0),
               .tied = model.flag("tied", true, "the embedding of tokens is also what makes logits")} {
    model.require(sizes_.width % sizes_.heads == 0, "width",
                  std::to_string(sizes_.width) + " is not a multiple of model.heads = " + std::to_string(sizes_.heads));
  }
  Model make(const ExampleShape& shape) const override {
    const TokenShape tokens = require_tokens(shape, "transformer");
    return Model(std::make_shared<TransformerImpl>(sizes_, tokens.vocabulary, tokens.length));
  }

 private:
  TransformerSizes sizes_;
};

}  // namespace

ModelEntry transformer_model() {
  return {
      .name = "transformer",
      .summary = "a decoder of GPT-2's blocks that foretells the next token",
      .equation = "x = E[token] + P[position]; L times x <- x + attention(norm x), x <- x + mlp(norm x); norm(x) E^T",
      .cost = "V d + T d + L (12 d^2 + 13 d) + 2 d parameters in 12 L + 4 segments",
      .citation = "radford2019language; vaswani2017attention",
      .make = [](Config& model) -> std::unique_ptr<ModelFactory> {
        return std::make_unique<TransformerFactory>(model);
      }};
}

}  // namespace hearsay

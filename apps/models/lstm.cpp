// lstm: a recurrent network that foretells the next token of a sequence.
//   x = E[token];  L layers of LSTM with h units each, dropout before and after each;  logits = H x + b
// zaremba2014recurrent, whose large network the gTop-k experiments train (shi2019gtopk): two layers
// of 1,500 units, an embedding of 1,500, dropout 0.65. hochreiter1997lstm.
// Deviates from the paper in: a sequence begins with a state of zeros, not with the end of the one before it, since
// examples are shuffled and shared out; LibTorch's LSTM adds two biases a layer, of which one would do. The sizes are
// small by default. Weights start from U(−0.04, 0.04), as in the paper.
// Cost: V e + L (4 h (e' + h) + 8 h) + V h + V parameters in 4 L + 3 segments, e' = e in the first layer and h behind
// it; the paper's sizes, with V = 10,000: 66,034,000. Forward: 4 h (e' + h) L + V h multiplications a token.
#include <torch/torch.h>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

struct LstmSizes {
  std::int64_t layers, hidden, embedding;
  double dropout;
};

class LstmImpl : public torch::nn::Module {
 public:
  LstmImpl(const LstmSizes& sizes, std::int64_t vocabulary)
      : tokens_(register_module("tokens", torch::nn::Embedding(vocabulary, sizes.embedding))),
        dropout_(register_module("dropout", torch::nn::Dropout(sizes.dropout))),
        lstm_(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(sizes.embedding, sizes.hidden)
                                                          .num_layers(sizes.layers)
                                                          .batch_first(true)
                                                          .dropout(sizes.layers > 1 ? sizes.dropout : 0.0)))),
        head_(register_module("head", torch::nn::Linear(sizes.hidden, vocabulary))) {
    const torch::NoGradGuard no_gradient;
    for (torch::Tensor& parameter : parameters()) parameter.uniform_(-0.04, 0.04);
  }
  torch::Tensor forward(const torch::Tensor& tokens) {  // (B, T) → (B, T, V)
    return head_(dropout_(std::get<0>(lstm_(dropout_(tokens_(tokens))))));
  }

 private:
  torch::nn::Embedding tokens_;
  torch::nn::Dropout dropout_;
  torch::nn::LSTM lstm_;
  torch::nn::Linear head_;
};

class LstmFactory final : public ModelFactory {
 public:
  explicit LstmFactory(Config& model)
      : sizes_{.layers = model.integer("layers", 2, Range::between(1, 100), "L"),
               .hidden = model.integer("hidden", 200, Range::between(1, 1e6), "h, units of a layer"),
               .embedding = model.integer("embedding", 200, Range::between(1, 1e6), "e, numbers that a token becomes"),
               .dropout = read_dropout(model, 0.0)} {}
  Model make(const ExampleShape& shape) const override {
    return Model(std::make_shared<LstmImpl>(sizes_, require_tokens(shape, "lstm").vocabulary));
  }

 private:
  LstmSizes sizes_;
};

}  // namespace

ModelEntry lstm_model() {
  return {.name = "lstm",
          .summary = "layers of LSTM that foretell the next token",
          .equation = "x = E[token]; L times x <- lstm(dropout x); H dropout x + b",
          .cost = "V e + L (4 h (e' + h) + 8 h) + V h + V parameters in 4 L + 3 segments",
          .citation = "zaremba2014recurrent; shi2019gtopk",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<LstmFactory>(model); }};
}

}  // namespace hearsay

// seq2seq_transformer: an encoder that reads a sequence, and a decoder that writes another.
//   x = √d E[token] + P[position], P sines and cosines
//   encoder, L times:  x ← x + A(norm x), x ← x + M(norm x);  m = norm(x)
//   decoder, L times:  y ← y + A(norm y), of what stands before, y ← y + A(norm y, m), y ← y + M(norm y)
//   logits = norm(y) Eᵀ;   A: heads of softmax(Q Kᵀ/√(d/h) + mask) V and a projection;  M: d → f, ReLU, → d
// vaswani2017attention.
// Deviates from the paper in: norms are before A and M, not after, which needs no warm-up to begin with. Both
// languages and the output share one E, as there. The sizes are small by default.
// Cost: V d + L (4 (d² + d) + 2 d f + f + d + 4 d) + L (8 (d² + d) + 2 d f + f + d + 6 d) + 4 d parameters in
// 42 L + 5 segments, for V tokens. The paper's base model with 37,000 tokens: 63.1 million, "65" there.
#include <torch/torch.h>

#include <cmath>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/writing.hpp"

namespace hearsay {
namespace {

using torch::nn::LayerNorm;
using torch::nn::Linear;

constexpr std::int64_t padding = 0;

struct PairSizes {
  std::int64_t layers, heads, width, inner;
  double dropout;
};

Linear linear(std::int64_t in, std::int64_t out) {
  Linear layer(in, out);
  torch::nn::init::xavier_uniform_(layer->weight);
  torch::nn::init::zeros_(layer->bias);
  return layer;
}

/// Keys and values of what attention looks at: (B, h, S, d/h) each.
struct KeyValues {
  torch::Tensor keys, values;
};

class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const PairSizes& s)
      : heads_(s.heads),
        query_(register_module("query", linear(s.width, s.width))),
        key_(register_module("key", linear(s.width, s.width))),
        value_(register_module("value", linear(s.width, s.width))),
        projection_(register_module("projection", linear(s.width, s.width))),
        dropout_(register_module("dropout", torch::nn::Dropout(s.dropout))) {}
  /// `seen`: (B, S, d).
  KeyValues key_values(const torch::Tensor& seen) { return {parted(key_(seen)), parted(value_(seen))}; }
  /// (B, T, d) looks at what is seen, but not where `hidden`, (B, 1, 1, S) or (T, S), is true; undefined: everywhere.
  torch::Tensor forward(const torch::Tensor& x, const KeyValues& seen, const torch::Tensor& hidden) {
    torch::Tensor scores = torch::matmul(parted(query_(x)), seen.keys.transpose(-2, -1)) /
                           std::sqrt(static_cast<double>(x.size(2) / heads_));
    if (hidden.defined()) scores = scores.masked_fill(hidden, -INFINITY);
    const torch::Tensor weights = dropout_(scores.softmax(-1));
    return projection_(torch::matmul(weights, seen.values).transpose(1, 2).reshape(x.sizes()));
  }

 private:
  torch::Tensor parted(const torch::Tensor& x) const {  // (B, T, d) → (B, h, T, d/h)
    return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
  }
  std::int64_t heads_;
  Linear query_, key_, value_, projection_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(Attention);

/// A layer of the encoder, or of the decoder, which looks at the source, too.
class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl(const PairSizes& s, bool decodes)
      : norm1_(register_module("norm1", norm(s))),
        self_(register_module("self", Attention(s))),
        norm2_(register_module("norm2", norm(s))),
        up_(register_module("up", linear(s.width, s.inner))),
        down_(register_module("down", linear(s.inner, s.width))),
        dropout_(register_module("dropout", torch::nn::Dropout(s.dropout))) {
    if (!decodes) return;
    norm_source_ = register_module("norm_source", norm(s));
    source_ = register_module("source", Attention(s));
  }
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& hidden, const KeyValues& source = {},
                        const torch::Tensor& hidden_source = {}) {
    const torch::Tensor own = norm1_(x);
    return attend(x, own, self_->key_values(own), hidden, source, hidden_source);
  }
  /// Decodes one more token, x (B, 1, d). `cache`: keys and values of the tokens before it; its own join them.
  torch::Tensor next(const torch::Tensor& x, KeyValues& cache, const KeyValues& source,
                     const torch::Tensor& hidden_source) {
    const torch::Tensor own = norm1_(x);
    const KeyValues now = self_->key_values(own);
    cache = cache.keys.defined()
                ? KeyValues{torch::cat({cache.keys, now.keys}, 2), torch::cat({cache.values, now.values}, 2)}
                : now;
    return attend(x, own, cache, {}, source, hidden_source);
  }
  KeyValues source_key_values(const torch::Tensor& memory) { return source_->key_values(memory); }
  static LayerNorm norm(const PairSizes& s) { return LayerNorm(torch::nn::LayerNormOptions({s.width})); }

 private:
  torch::Tensor attend(torch::Tensor x, const torch::Tensor& own, const KeyValues& seen, const torch::Tensor& hidden,
                       const KeyValues& source, const torch::Tensor& hidden_source) {
    x = x + dropout_(self_(own, seen, hidden));
    if (source_) x = x + dropout_(source_(norm_source_(x), source, hidden_source));
    return x + dropout_(down_(dropout_(torch::relu(up_(norm2_(x))))));
  }

  LayerNorm norm1_;
  Attention self_;
  LayerNorm norm2_;
  Linear up_, down_;
  torch::nn::Dropout dropout_;
  LayerNorm norm_source_{nullptr};
  Attention source_{nullptr};
};
TORCH_MODULE(Layer);

/// (T, d): sin(t / 10000^(2i/d)) and, beside it, the cosine.
torch::Tensor positions(std::int64_t length, std::int64_t width) {
  const torch::Tensor rates = torch::exp(torch::arange(0, width, 2) * (-std::log(1e4) / static_cast<double>(width)));
  const torch::Tensor angles = torch::arange(length).unsqueeze(1) * rates;
  return torch::stack({angles.sin(), angles.cos()}, 2).flatten(1);
}

class Seq2SeqTransformerImpl : public torch::nn::Module, public SequenceWriter {
 public:
  Seq2SeqTransformerImpl(const PairSizes& s, const PairShape& pairs)
      : source_length_(pairs.source_length),
        positions_(positions(std::max(pairs.source_length, pairs.target_length), s.width)),
        tokens_(register_module("tokens", torch::nn::Embedding(pairs.vocabulary, s.width))),
        dropout_(register_module("dropout", torch::nn::Dropout(s.dropout))),
        encoder_(register_module("encoder", torch::nn::ModuleList())),
        encoder_norm_(register_module("encoder_norm", LayerImpl::norm(s))),
        decoder_(register_module("decoder", torch::nn::ModuleList())),
        decoder_norm_(register_module("decoder_norm", LayerImpl::norm(s))) {
    for (std::int64_t l = 0; l < s.layers; ++l)
      encoder_->push_back(Layer(s, false)), decoder_->push_back(Layer(s, true));
    const torch::NoGradGuard no_gradient;
    tokens_->weight.normal_(0.0, 1.0 / std::sqrt(static_cast<double>(s.width)));
  }

  torch::Tensor forward(const torch::Tensor& tokens) {  // (B, S + T) → (B, T, V)
    const Read read = encode(tokens.narrow(1, 0, source_length_));
    return logits(decode(read, tokens.slice(1, source_length_)));
  }

  NextToken writer(const torch::Tensor& source) override {
    const Read read = encode(source);
    std::vector<KeyValues> sources;
    for (const auto& layer : *decoder_) sources.push_back(layer->as<Layer>()->source_key_values(read.memory));
    return [this, read, sources, cache = std::vector<KeyValues>(sources.size())](const torch::Tensor& so_far) mutable {
      const std::int64_t last = so_far.size(1) - 1;
      torch::Tensor y = embedded(so_far.narrow(1, last, 1), last);
      for (std::size_t l = 0; l < sources.size(); ++l)
        y = decoder_[l]->as<Layer>()->next(y, cache[l], sources[l], read.nothing);
      return logits(decoder_norm_(y).select(1, 0));
    };
  }

 private:
  struct Read {
    torch::Tensor memory, nothing;  // (B, S', d); (B, 1, 1, S'): true after a source's end
  };

  /// Tokens whose first stands at `from`.
  torch::Tensor embedded(const torch::Tensor& tokens, std::int64_t from = 0) {
    const torch::Tensor x = tokens_(tokens) * std::sqrt(static_cast<double>(tokens_->weight.size(1)));
    return dropout_(x + positions_.to(x.device()).narrow(0, from, tokens.size(1)));
  }

  Read encode(const torch::Tensor& padded) {
    const std::int64_t longest = padded.ne(padding).sum(1).clamp_min(1).max().item<std::int64_t>();
    const torch::Tensor source = padded.narrow(1, 0, longest);
    torch::Tensor nothing = source.eq(padding);
    nothing.select(1, 0).fill_(false);  // an empty source has something to look at
    nothing = nothing.unsqueeze(1).unsqueeze(1);
    torch::Tensor x = embedded(source);
    for (const auto& layer : *encoder_) x = layer->as<Layer>()->forward(x, nothing);
    return {encoder_norm_(x), nothing};
  }

  torch::Tensor decode(const Read& read, const torch::Tensor& target) {
    const std::int64_t length = target.size(1);
    const torch::Tensor later = torch::ones({length, length}, target.options().dtype(torch::kBool)).triu(1);
    torch::Tensor y = embedded(target);
    for (const auto& layer : *decoder_) {
      auto* const decodes = layer->as<Layer>();
      y = decodes->forward(y, later, decodes->source_key_values(read.memory), read.nothing);
    }
    return decoder_norm_(y);
  }

  torch::Tensor logits(const torch::Tensor& y) { return torch::linear(y, tokens_->weight); }

  std::int64_t source_length_;
  torch::Tensor positions_;
  torch::nn::Embedding tokens_;
  torch::nn::Dropout dropout_;
  torch::nn::ModuleList encoder_;
  LayerNorm encoder_norm_;
  torch::nn::ModuleList decoder_;
  LayerNorm decoder_norm_;
};

class Seq2SeqTransformerFactory final : public ModelFactory {
 public:
  explicit Seq2SeqTransformerFactory(Config& model)
      : sizes_{.layers = model.integer("layers", 2, Range::between(1, 1000), "L, of the encoder and of the decoder"),
               .heads = model.integer("heads", 4, Range::between(1, 1000), "h, which share the width"),
               .width = model.integer("width", 128, Range::between(2, 1e6), "d, of both streams"),
               .inner = model.integer("inner", 512, Range::between(1, 1e6), "f, units between the two layers of M"),
               .dropout = read_dropout(model, 0.0)} {
    model.require(
        sizes_.width % sizes_.heads == 0 && sizes_.width % 2 == 0, "width",
        std::to_string(sizes_.width) + " is not an even multiple of model.heads = " + std::to_string(sizes_.heads));
  }
  Model make(const ExampleShape& shape) const override {
    return Model(std::make_shared<Seq2SeqTransformerImpl>(sizes_, require_pairs(shape, "seq2seq_transformer")));
  }

 private:
  PairSizes sizes_;
};

}  // namespace

ModelEntry seq2seq_transformer_model() {
  return {.name = "seq2seq_transformer",
          .summary = "a transformer's encoder and decoder, which translate",
          .equation =
              "m = L times attention and mlp of the source; y = L times attention, attention to m, mlp; norm(y) E^T",
          .cost = "V d + L (12 d^2 + 4 d f + 2 f + 24 d) + 4 d parameters in 42 L + 5 segments",
          .citation = "vaswani2017attention",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> {
            return std::make_unique<Seq2SeqTransformerFactory>(model);
          }};
}

}  // namespace hearsay

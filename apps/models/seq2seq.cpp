// seq2seq: a recurrent network that reads a sequence and writes another, looking back at what it has read.
//   H = bidirectional GRU of E_s[source];  s_0 = tanh(A mean(H) + a)
//   s'_t = GRU1(E_t[y_{t−1}], s_{t−1});  c_t = Σ_j softmax_j(v · tanh(U H_j + W s'_t)) H_j;  s_t = GRU2(c_t, s'_t)
//   logits_t = O tanh(P [s_t, E_t[y_{t−1}], c_t] + p) + o
// bahdanau2015neural with the two-step cell of sennrich2017nematus, which is what aji2017sparse trains (embeddings of
// 512, 1,024 units).
// Deviates from the papers in: one table of tokens serves both languages, but either has its embedding; no layer
// normalisation; LibTorch's GRU, whose candidate gate has two biases. The sizes are small by default.
// Cost: 2 V e for E_s and E_t, encoder 6 h (e + h + 2), A 2h² + h, GRU1 3 h (e + h + 2), attention 3 h² + h, GRU2
// 3 h (3 h + 2), P (3 h + e) e + e and O V e + V parameters in 27 segments, for V tokens, e numbers each, and h units.
// The target's tokens one after the other: a pass takes as many steps as the longest target has.
#include <torch/torch.h>

#include "apps/models/models.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/writing.hpp"

namespace hearsay {
namespace {

constexpr std::int64_t padding_token = 0;

struct Seq2SeqSizes {
  std::int64_t embedding, hidden;
  double dropout;
};

class Seq2SeqImpl : public torch::nn::Module, public SequenceWriter {
 public:
  Seq2SeqImpl(const Seq2SeqSizes& s, const PairShape& pairs)
      : source_length_(pairs.source_length),
        source_(register_module("source", torch::nn::Embedding(pairs.vocabulary, s.embedding))),
        target_(register_module("target", torch::nn::Embedding(pairs.vocabulary, s.embedding))),
        dropout_(register_module("dropout", torch::nn::Dropout(s.dropout))),
        encoder_(register_module(
            "encoder",
            torch::nn::GRU(torch::nn::GRUOptions(s.embedding, s.hidden).batch_first(true).bidirectional(true)))),
        start_(register_module("start", torch::nn::Linear(2 * s.hidden, s.hidden))),
        cell1_(register_module("cell1", torch::nn::GRUCell(s.embedding, s.hidden))),
        keys_(register_module("keys", torch::nn::Linear(torch::nn::LinearOptions(2 * s.hidden, s.hidden).bias(false)))),
        query_(register_module("query", torch::nn::Linear(torch::nn::LinearOptions(s.hidden, s.hidden).bias(false)))),
        score_(register_module("score", torch::nn::Linear(torch::nn::LinearOptions(s.hidden, 1).bias(false)))),
        cell2_(register_module("cell2", torch::nn::GRUCell(2 * s.hidden, s.hidden))),
        deep_(register_module("deep", torch::nn::Linear(3 * s.hidden + s.embedding, s.embedding))),
        head_(register_module("head", torch::nn::Linear(s.embedding, pairs.vocabulary))) {}

  torch::Tensor forward(const torch::Tensor& tokens) {  // (B, S + T) → (B, T, V)
    const Read read = encode(tokens.narrow(1, 0, source_length_));
    const torch::Tensor before = dropout_(target_(tokens.slice(1, source_length_)));  // (B, T, e)
    torch::Tensor state = read.start;
    std::vector<torch::Tensor> states, contexts;
    for (std::int64_t t = 0; t < before.size(1); ++t) {
      contexts.push_back(step(read, before.select(1, t), state));
      states.push_back(state);
    }
    return logits(torch::stack(states, 1), before, torch::stack(contexts, 1));
  }

  NextToken writer(const torch::Tensor& source) override {
    const Read read = encode(source);
    return [this, read, state = read.start](const torch::Tensor& so_far) mutable {
      const torch::Tensor before = target_(so_far.select(1, -1));
      const torch::Tensor context = step(read, before, state);
      return logits(state, before, context);
    };
  }

 private:
  /// What a source is to the writing half.
  struct Read {
    torch::Tensor states, keys;  // (B, S', 2h), (B, S', h)
    torch::Tensor nothing;       // (B, S'): true after a source's end
    torch::Tensor start;         // s_0 (B, h)
  };

  Read encode(const torch::Tensor& padded) {
    const torch::Tensor lengths = padded.ne(padding_token).sum(1).clamp_min(1).cpu();
    const torch::Tensor source = padded.narrow(1, 0, lengths.max().item<std::int64_t>());
    const auto packed = torch::nn::utils::rnn::pack_padded_sequence(dropout_(source_(source)), lengths, true, false);
    const auto states = std::get<0>(
        torch::nn::utils::rnn::pad_packed_sequence(std::get<0>(encoder_->forward_with_packed_input(packed)), true));
    const torch::Tensor mean = states.sum(1) / lengths.to(states.device()).unsqueeze(1);
    return {states, keys_(states), source.eq(padding_token), torch::tanh(start_(mean))};
  }

  /// s_{t−1} → s_t; returns c_t.
  torch::Tensor step(const Read& read, const torch::Tensor& before, torch::Tensor& state) {
    const torch::Tensor half = cell1_(before, state);
    const torch::Tensor scores = score_(torch::tanh(read.keys + query_(half).unsqueeze(1))).squeeze(-1);
    const torch::Tensor weights = scores.masked_fill(read.nothing, -INFINITY).softmax(-1);
    const torch::Tensor context = torch::bmm(weights.unsqueeze(1), read.states).squeeze(1);
    state = cell2_(context, half);
    return context;
  }

  torch::Tensor logits(const torch::Tensor& state, const torch::Tensor& before, const torch::Tensor& context) {
    return head_(dropout_(torch::tanh(deep_(torch::cat({state, before, context}, -1)))));
  }

  std::int64_t source_length_;
  torch::nn::Embedding source_, target_;
  torch::nn::Dropout dropout_;
  torch::nn::GRU encoder_;
  torch::nn::Linear start_;
  torch::nn::GRUCell cell1_;
  torch::nn::Linear keys_, query_, score_;
  torch::nn::GRUCell cell2_;
  torch::nn::Linear deep_, head_;
};

class Seq2SeqFactory final : public ModelFactory {
 public:
  explicit Seq2SeqFactory(Config& model)
      : sizes_{.embedding = model.integer("embedding", 128, Range::between(1, 1e6), "e, numbers that a token becomes"),
               .hidden = model.integer("hidden", 128, Range::between(1, 1e6), "h, units of every recurrent layer"),
               .dropout = read_dropout(model, 0.0)} {}
  Model make(const ExampleShape& shape) const override {
    return Model(std::make_shared<Seq2SeqImpl>(sizes_, require_pairs(shape, "seq2seq")));
  }

 private:
  Seq2SeqSizes sizes_;
};

}  // namespace

ModelEntry seq2seq_model() {
  return {
      .name = "seq2seq",
      .summary = "recurrent encoder and decoder with attention, which translates",
      .equation =
          "H = bi-GRU(source); s' = GRU1(y, s); c = attention(s', H); s = GRU2(c, s'); softmax(O tanh P[s, y, c])",
      .cost = "3 V e + V + h (23 h + 9 e + 26) + (3 h + e) e + e parameters in 27 segments",
      .citation = "bahdanau2015neural; sennrich2017nematus; aji2017sparse",
      .make = [](Config& model) -> std::unique_ptr<ModelFactory> { return std::make_unique<Seq2SeqFactory>(model); }};
}

}  // namespace hearsay

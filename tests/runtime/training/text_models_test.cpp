// Networks for text against their formulas: the number of parameters, and a forward pass written in plain loops.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"

namespace text_models_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

using Row = std::vector<double>;
using Rows = std::vector<Row>;

ExampleShape tokens_of(std::int64_t vocabulary, std::int64_t length) {
  const TensorShape tokens{.element = TensorShape::Element::classes, .sizes = {length}, .classes = vocabulary};
  return {.inputs = tokens, .targets = tokens};
}

Model text_model(const std::string& section, std::int64_t vocabulary, std::int64_t length) {
  Config config = Config::from_text(section);
  const auto factory = chosen_entry(models(), config, "transformer", "the model").make(config);
  config.document().throw_if_invalid();
  return factory->make(tokens_of(vocabulary, length));
}

/// The parameters of a model by name, as tables of numbers.
class Weights {
 public:
  explicit Weights(Model& model) {
    for (const auto& item : model.module().named_parameters()) named_.emplace_back(item.key(), item.value());
  }
  Rows matrix(const std::string& name) const {
    const torch::Tensor t = find(name);
    Rows rows(static_cast<std::size_t>(t.size(0)), Row(static_cast<std::size_t>(t.size(1))));
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < rows[i].size(); ++j)
        rows[i][j] = t[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>();
    return rows;
  }
  Row vector(const std::string& name) const {
    const torch::Tensor t = find(name).contiguous();
    return {t.data_ptr<float>(), t.data_ptr<float>() + t.numel()};
  }

 private:
  torch::Tensor find(const std::string& name) const {
    for (const auto& [key, value] : named_)
      if (key == name) return value.detach();
    FAIL("no parameter " << name);
    return {};
  }
  std::vector<std::pair<std::string, torch::Tensor>> named_;
};

/// A x + b
Row affine(const Rows& a, const Row& x, const Row& b = {}) {
  Row y = b.empty() ? Row(a.size(), 0.0) : b;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += a[i][j] * x[j];
  return y;
}

Row plus(Row x, const Row& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

Row normalised(const Row& x, const Row& gain, const Row& offset) {
  double mean = 0.0, square = 0.0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(square + 1e-5) * gain[i] + offset[i];
  return y;
}

/// GPT-2's.
double gelu(double x) { return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x))); }

/// Attention of every token to itself and those before it, head by head.
Rows attention(const Rows& qkv, std::size_t heads) {
  const std::size_t width = qkv.front().size() / 3, part = width / heads;
  Rows out(qkv.size(), Row(width, 0.0));
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t t = 0; t < qkv.size(); ++t) {
      Row weights;
      double sum = 0.0;
      for (std::size_t s = 0; s <= t; ++s) {
        double product = 0.0;
        for (std::size_t i = h * part; i < (h + 1) * part; ++i) product += qkv[t][i] * qkv[s][width + i];
        weights.push_back(std::exp(product / std::sqrt(static_cast<double>(part))));
        sum += weights.back();
      }
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t i = h * part; i < (h + 1) * part; ++i) out[t][i] += weights[s] / sum * qkv[s][2 * width + i];
    }
  }
  return out;
}

Rows plain_transformer(const Weights& w, const std::vector<std::int64_t>& tokens, std::size_t layers, std::size_t heads,
                       bool tied) {
  const Rows embedding = w.matrix("tokens.weight"), positions = w.matrix("positions.weight");
  Rows x;
  for (std::size_t t = 0; t < tokens.size(); ++t)
    x.push_back(plus(embedding[static_cast<std::size_t>(tokens[t])], positions[t]));
  for (std::size_t l = 0; l < layers; ++l) {
    const std::string b = "blocks." + std::to_string(l) + ".";
    const auto norm = [&](const Row& row, const std::string& n) {
      return normalised(row, w.vector(b + n + ".weight"), w.vector(b + n + ".bias"));
    };
    const auto linear = [&](const Row& row, const std::string& n) {
      return affine(w.matrix(b + n + ".weight"), row, w.vector(b + n + ".bias"));
    };
    Rows qkv;
    for (const Row& row : x) qkv.push_back(linear(norm(row, "norm1"), "qkv"));
    const Rows attended = attention(qkv, heads);
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = plus(x[t], linear(attended[t], "projection"));
      Row up = linear(norm(x[t], "norm2"), "up");
      for (double& value : up) value = gelu(value);
      x[t] = plus(x[t], linear(up, "down"));
    }
  }
  const Rows head = tied ? embedding : w.matrix("head.weight");
  for (Row& row : x) row = affine(head, normalised(row, w.vector("norm.weight"), w.vector("norm.bias")));
  return x;
}

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Cell {
  double out = 0.0, state = 0.0;
};

/// The rows of a layer's cells, one after the other, that begin with zeros.
void plain_lstm_layer(const Weights& w, const std::string& number, Rows& x) {
  const Rows in = w.matrix("lstm.weight_ih_l" + number), on = w.matrix("lstm.weight_hh_l" + number);
  const Row in_bias = w.vector("lstm.bias_ih_l" + number), on_bias = w.vector("lstm.bias_hh_l" + number);
  std::vector<Cell> cells(on.front().size());
  const std::size_t units = cells.size();
  for (Row& row : x) {
    Row before;
    for (const Cell& cell : cells) before.push_back(cell.out);
    const Row gates = plus(affine(in, row, in_bias), affine(on, before, on_bias));  // input, forget, cell, output
    row.clear();
    for (std::size_t i = 0; i < units; ++i) {
      Cell& cell = cells[i];
      cell.state = logistic(gates[units + i]) * cell.state + logistic(gates[i]) * std::tanh(gates[2 * units + i]);
      cell.out = logistic(gates[3 * units + i]) * std::tanh(cell.state);
      row.push_back(cell.out);
    }
  }
}

Rows plain_lstm(const Weights& w, const std::vector<std::int64_t>& tokens, std::size_t layers) {
  Rows x;
  for (const std::int64_t token : tokens) x.push_back(w.matrix("tokens.weight")[static_cast<std::size_t>(token)]);
  for (std::size_t l = 0; l < layers; ++l) plain_lstm_layer(w, std::to_string(l), x);
  for (Row& row : x) row = affine(w.matrix("head.weight"), row, w.vector("head.bias"));
  return x;
}

/// Weights as far from their start as training takes them, so that every term counts.
void stir(Model& model) {
  const torch::NoGradGuard no_gradient;
  torch::manual_seed(11);
  for (const torch::Tensor& p : model.trainable()) torch::Tensor(p).add_(0.3 * torch::randn_like(p));
  model.module().eval();
}

void check_equal(const torch::Tensor& logits, const Rows& expected) {
  double largest = 0.0;
  for (std::size_t t = 0; t < expected.size(); ++t)
    for (std::size_t v = 0; v < expected[t].size(); ++v)
      largest = std::max(largest,
                         std::abs(logits[0][static_cast<std::int64_t>(t)][static_cast<std::int64_t>(v)].item<double>() -
                                  expected[t][v]));
  CHECK(largest < 1e-5);
}

const std::vector<std::int64_t> sentence{3, 1, 4, 1, 5, 2, 6};
torch::Tensor as_batch(const std::vector<std::int64_t>& tokens) {
  return torch::tensor(tokens, torch::kInt64).unsqueeze(0);
}

TEST_CASE("transformer: the number of parameters is the formula's, and GPT-2's where the sizes are") {
  for (const std::int64_t layers : {1, 4})
    for (const std::int64_t width : {16, 128})
      for (const bool tied : {true, false}) {
        CAPTURE(layers);
        CAPTURE(width);
        CAPTURE(tied);
        const std::int64_t vocabulary = 65, length = 64;
        const Model model =
            text_model("{name: transformer, layers: " + std::to_string(layers) + ", width: " + std::to_string(width) +
                           ", tied: " + (tied ? "true" : "false") + "}",
                       vocabulary, length);
        const std::int64_t formula = (tied ? 1 : 2) * vocabulary * width + length * width +
                                     layers * (12 * width * width + 13 * width) + 2 * width;
        CHECK(model.replica().layout.size() == static_cast<std::size_t>(formula));
        CHECK(model.replica().layout.count() == static_cast<std::size_t>(12 * layers + (tied ? 4 : 5)));
      }
  CHECK(text_model("{name: transformer, layers: 12, heads: 12, width: 768}", 50257, 1024).replica().layout.size() ==
        124'439'808);
}

TEST_CASE("transformer: the forward pass is the one of plain loops") {
  for (const bool tied : {true, false}) {
    Model model = text_model(
        std::string("{name: transformer, layers: 2, heads: 2, width: 8, tied: ") + (tied ? "true}" : "false}"), 7, 9);
    stir(model);
    check_equal(model.forward(as_batch(sentence)), plain_transformer(Weights(model), sentence, 2, 2, tied));
  }
}

TEST_CASE("transformer: no token sees a later one, and every one sees all before it") {
  Model model = text_model("{name: transformer, layers: 2, heads: 2, width: 8}", 7, 9);
  stir(model);
  const torch::Tensor before = model.forward(as_batch(sentence));
  for (std::size_t changed = 0; changed < sentence.size(); ++changed) {
    auto other = sentence;
    other[changed] = (other[changed] + 1) % 7;
    const torch::Tensor difference = (model.forward(as_batch(other)) - before).abs().amax({0, 2});
    for (std::size_t t = 0; t < sentence.size(); ++t)
      CHECK((difference[static_cast<std::int64_t>(t)].item<double>() > 0.0) == (t >= changed));
  }
}

TEST_CASE("lstm: the number of parameters is the formula's, and the paper's where the sizes are") {
  const auto formula = [](std::int64_t v, std::int64_t e, std::int64_t h, std::int64_t layers) {
    std::int64_t sum = v * e + v * h + v;
    for (std::int64_t l = 0; l < layers; ++l) sum += 4 * h * ((l == 0 ? e : h) + h) + 8 * h;
    return static_cast<std::size_t>(sum);
  };
  const Model small = text_model("{name: lstm, layers: 3, hidden: 10, embedding: 6}", 50, 5);
  CHECK(small.replica().layout.size() == formula(50, 6, 10, 3));
  CHECK(small.replica().layout.count() == 15);
  const Model paper = text_model("{name: lstm, layers: 2, hidden: 1500, embedding: 1500, dropout: 0.65}", 10000, 35);
  CHECK(paper.replica().layout.size() == 66'034'000);
}

TEST_CASE("lstm: the forward pass is the one of plain loops") {
  Model model = text_model("{name: lstm, layers: 2, hidden: 5, embedding: 4}", 7, 9);
  stir(model);
  check_equal(model.forward(as_batch(sentence)), plain_lstm(Weights(model), sentence, 2));
}

TEST_CASE("a few steps learn a text by heart, with every optimizer") {
  for (const std::string model_section :
       {"{name: transformer, layers: 1, heads: 2, width: 16}", "{name: lstm, hidden: 16, embedding: 8}"})
    for (const std::string section : {"{name: adamw, learning_rate: 0.02, clip_norm: 1, decay_matrices_only: true}",
                                      "{name: sgd, learning_rate: 0.5, momentum: 0.9, clip_norm: 1}"}) {
      CAPTURE(model_section);
      CAPTURE(section);
      torch::manual_seed(3);
      Model model = text_model(model_section, 7, 6);
      Config config = Config::from_text(section);
      const auto optimizer = chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config)->build(model);
      config.document().throw_if_invalid();
      const torch::Tensor text = as_batch(sentence);
      const Batch batch{text.narrow(1, 0, 6), text.narrow(1, 1, 6)};
      double loss = 0.0;
      for (int k = 0; k < 150; ++k) {
        loss = model.loss_and_gradient(batch);
        optimizer->step();
      }
      CHECK(loss < 0.1);
      model.module().eval();
      CHECK(model.score(batch).sums.at(0) == 6.0);
    }
}

TEST_CASE("models and data that do not fit are errors of the configuration that name both") {
  Config section = Config::from_text("{name: transformer}");
  const auto factory = chosen_entry(models(), section, "transformer", "the model").make(section);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(factory->make(shape_of(random_images(1, 1, 28, 1)))),
      doctest::Contains("transformer takes sequences of tokens and foretells the next one, but the data "
                        "set has 1 channel of 28x28"),
      ConfigError);
  for (const std::string name : {"mlp", "mnist_cnn", "lenet5", "resnet18"}) {
    Config other = Config::from_text("{name: " + name + "}");
    const auto images = chosen_entry(models(), other, "mlp", "the model").make(other);
    CHECK_THROWS_WITH_AS(static_cast<void>(images->make(tokens_of(65, 64))),
                         doctest::Contains("but the data set has sequences of 64 tokens out of 65"), ConfigError);
  }
  CHECK_THROWS_WITH_AS(text_model("{name: transformer, heads: 3}", 7, 9),
                       doctest::Contains("128 is not a multiple of model.heads = 3"), ConfigError);
}

}  // namespace
}  // namespace text_models_test

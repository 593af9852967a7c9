// Networks that translate: the number of parameters is the formula's, padding and other examples of a batch change
// nothing, no token is written from what stands behind it, and what is written is what the forward pass says.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/model/writing.hpp"

namespace translation_models_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

constexpr std::int64_t vocabulary = 11, source_length = 5, target_length = 6, begin_token = 1, end_token = 2;

ExampleShape pairs_of(std::int64_t tokens, std::int64_t source, std::int64_t target) {
  const auto element = TensorShape::Element::classes;
  return {.inputs = {.element = element, .sizes = {source + target}, .classes = tokens},
          .targets = {.element = element, .sizes = {target}, .classes = tokens},
          .padded = true};
}

Model translator(const std::string& section, std::int64_t tokens = vocabulary) {
  Config config = Config::from_text(section);
  const auto factory = chosen_entry(models(), config, "seq2seq", "the model").make(config);
  config.document().throw_if_invalid();
  return factory->make(pairs_of(tokens, source_length, target_length));
}

const std::array<std::string, 2> small{"{name: seq2seq, embedding: 6, hidden: 8}",
                                       "{name: seq2seq_transformer, layers: 2, heads: 2, width: 8, inner: 12}"};

Model stirred(const std::string& section) {
  torch::manual_seed(11);
  Model model = translator(section);
  const torch::NoGradGuard no_gradient;
  for (const torch::Tensor& p : model.trainable()) torch::Tensor(p).add_(0.5 * torch::randn_like(p));
  model.module().eval();
  return model;
}

torch::Tensor row(std::vector<std::int64_t> source, const std::vector<std::int64_t>& target) {
  source.resize(source_length, 0);
  source.insert(source.end(), target.begin(), target.end());
  return torch::tensor(source, torch::kInt64).unsqueeze(0);
}

bool close(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().max().item<double>() < 1e-5; }

/// Judges by the number of tokens that are where they should be.
class Hits final : public Writing {
 public:
  Hits() : Writing(begin_token, end_token) {}
  Metric metric() const override { return bleu_metric(); }
  std::int64_t most(std::span<const std::int64_t> source) const override {
    return source.back() == 0 ? 3 : target_length;
  }
  std::size_t sums() const override { return 2; }
  void judge(std::span<const std::int64_t> written, std::span<const std::int64_t> wanted,
             std::span<double> sums) const override {
    for (std::size_t i = 0; i < std::min(written.size(), wanted.size()); ++i) sums[0] += written[i] == wanted[i];
    sums[1] += static_cast<double>(wanted.size());
  }
  double value(std::span<const double> sums) const override { return 100.0 * sums[0] / sums[1]; }
};

TEST_CASE("translators: the number of parameters is the formula's") {
  for (const std::int64_t v : {11, 300})
    for (const std::int64_t e : {6, 10})
      for (const std::int64_t h : {8, 5}) {
        const Model model =
            translator("{name: seq2seq, embedding: " + std::to_string(e) + ", hidden: " + std::to_string(h) + "}", v);
        const std::int64_t formula = 3 * v * e + v + h * (23 * h + 9 * e + 26) + (3 * h + e) * e + e;
        CHECK(model.replica().layout.size() == static_cast<std::size_t>(formula));
        CHECK(model.replica().layout.count() == 27);
      }
  const auto formula = [](std::int64_t v, std::int64_t d, std::int64_t f, std::int64_t layers) {
    const std::int64_t attention = 4 * (d * d + d), inner = 2 * d * f + f + d, norm = 2 * d;
    return v * d + layers * (attention + inner + 2 * norm) + layers * (2 * attention + inner + 3 * norm) + 2 * norm;
  };
  const Model model = translator("{name: seq2seq_transformer, layers: 3, width: 16, inner: 20}");
  CHECK(model.replica().layout.size() == static_cast<std::size_t>(formula(vocabulary, 16, 20, 3)));
  CHECK(model.replica().layout.count() == 42 * 3 + 5);
  // The paper's base model: 65 million with about 37,000 tokens.
  const Model base = translator("{name: seq2seq_transformer, layers: 6, heads: 8, width: 512, inner: 2048}", 37'000);
  CHECK(base.replica().layout.size() == 63'084'544);
  CHECK(static_cast<double>(base.replica().layout.size()) == doctest::Approx(65e6).epsilon(0.03));
}

TEST_CASE("translators: padding and the other examples of a batch change nothing") {
  for (const std::string& section : small) {
    CAPTURE(section);
    Model model = stirred(section);
    const torch::Tensor one = row({3, 4}, {1, 7, 8, 9, 0, 0}), other = row({5, 6, 7, 8, 9}, {1, 3, 4, 5, 6, 7});
    const torch::Tensor both = model.forward(torch::cat({one, other}));
    CHECK(both.sizes() == torch::IntArrayRef({2, target_length, vocabulary}));
    CHECK(close(both[0], model.forward(one)[0]));
    CHECK(close(both[1], model.forward(other)[0]));
    CHECK(close(model.forward(one.narrow(1, 0, source_length + 4))[0], both[0].narrow(0, 0, 4)));  // a cut batch
  }
}

TEST_CASE("translators: no token sees a later one, every one sees all before it and the whole source") {
  for (const std::string& section : small) {
    CAPTURE(section);
    Model model = stirred(section);
    const torch::Tensor tokens = row({3, 4, 5, 6, 7}, {1, 7, 8, 9, 3, 4}), before = model.forward(tokens);
    for (std::int64_t changed = 0; changed < source_length + target_length; ++changed) {
      torch::Tensor altered = tokens.clone();
      altered[0][changed] = 10;
      const torch::Tensor difference = (model.forward(altered) - before).abs().amax({0, 2});
      for (std::int64_t t = 0; t < target_length; ++t)
        CHECK((difference[t].item<double>() > 0.0) == (t >= changed - source_length));
    }
  }
}

TEST_CASE("translators that write go on with what their forward pass begins anew") {
  for (const std::string& section : small) {
    CAPTURE(section);
    Model model = stirred(section);
    const torch::NoGradGuard no_gradient;
    const torch::Tensor source = torch::cat({row({3, 4, 5, 6, 7}, {}), row({3, 4, 0, 0, 0}, {})});
    const torch::Tensor written = torch::tensor({{1, 7, 8, 9, 3, 4}, {1, 3, 3, 5, 10, 6}}, torch::kInt64);
    const NextToken next = dynamic_cast<SequenceWriter&>(model.module()).writer(source);
    for (std::int64_t t = 1; t <= written.size(1); ++t) {
      const torch::Tensor so_far = written.narrow(1, 0, t);
      CHECK(close(next(so_far), model.forward(torch::cat({source, so_far}, 1)).select(1, -1)));
    }
  }
}

TEST_CASE("translators write what their forward pass finds most probable, and end") {
  for (const std::string& section : small) {
    CAPTURE(section);
    Model model = stirred(section);
    const torch::NoGradGuard no_gradient;
    const torch::Tensor source =
        torch::cat({row({3, 4, 5, 6, 7}, {}), row({3, 4, 0, 0, 0}, {}), row({9, 8, 7, 6, 5}, {})});
    auto& writer = dynamic_cast<SequenceWriter&>(model.module());
    const Hits hits;
    const auto fast = write_greedily(source, hits, writer.writer(source));
    const auto slow = write_greedily(source, hits, [&](const torch::Tensor& so_far) {
      return model.forward(torch::cat({source, so_far}, 1)).select(1, -1);
    });
    CHECK(fast == slow);
    CHECK(fast[0].size() <= target_length);
    CHECK(fast[1].size() <= 3);
    for (std::size_t i = 0; i < fast.size(); ++i) {
      CHECK(std::ranges::count(fast[i], end_token) == 0);
      std::vector<std::int64_t> inputs{begin_token};
      for (const std::int64_t token : fast[i]) {
        const auto at = static_cast<std::int64_t>(i);
        const torch::Tensor so_far = torch::tensor(inputs, torch::kInt64).unsqueeze(0);
        const torch::Tensor logits = model.forward(torch::cat({source.narrow(0, at, 1), so_far}, 1));
        CHECK(logits.select(1, -1).argmax().item<std::int64_t>() == token);
        inputs.push_back(token);
      }
    }
  }
}

TEST_CASE("a few steps learn sentences by heart, and scores of batches add up to that of all") {
  DataSet data;
  data.name = "made";
  data.shape = pairs_of(vocabulary, source_length, target_length);
  data.metrics = {bleu_metric(), loss_metric(), accuracy_metric()};
  data.writing = std::make_shared<Hits>();
  const torch::Tensor inputs =
      torch::cat({row({3, 4, 5, 6, 7}, {1, 7, 6, 5, 4, 3}), row({8, 9, 10, 3, 4}, {1, 4, 3, 10, 0, 0})});
  const torch::Tensor targets =
      torch::tensor({7, 6, 5, 4, 3, 2, 4, 3, 10, 2, -1, -1}, torch::kInt64).view({2, target_length});
  for (const std::string& section : small) {
    CAPTURE(section);
    torch::manual_seed(3);
    Model model = translator(section);
    model.learn_by_default(objective_for(data, 0.1));
    Config config = Config::from_text("{name: adamw, learning_rate: 0.02, clip_norm: 1}");
    const auto optimizer = chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config)->build(model);
    const auto value = [&](const Score& score) { return values_of(model.objective(), score).at(0).value; };
    CHECK(value(model.score({inputs, targets})) < 50.0);
    for (int k = 0; k < 150; ++k) {
      static_cast<void>(model.loss_and_gradient({inputs, targets}));
      optimizer->step();
    }
    model.module().eval();
    const Score all = model.score({inputs, targets});
    Score sum;
    for (const std::int64_t i : {0, 1}) sum += model.score({inputs.narrow(0, i, 1), targets.narrow(0, i, 1)});
    CHECK(value(all) == 100.0);
    for (const std::size_t i : {0, 1, 3}) CHECK(sum.sums.at(i) == all.sums.at(i));
    CHECK(all.sums.at(0) == 8.0);
    CHECK(all.sums.at(2) == doctest::Approx(sum.sums.at(2)).epsilon(1e-5));
    CHECK(all.sums.at(3) == 10.0);
    CHECK(all.targets == 10.0);
  }
}

TEST_CASE("translators refuse other data, and other models refuse pairs") {
  Config section = Config::from_text("{name: seq2seq}");
  const auto factory = chosen_entry(models(), section, "seq2seq", "the model").make(section);
  CHECK_THROWS_WITH_AS(static_cast<void>(factory->make(shape_of(random_images(1, 1, 28, 1)))),
                       doctest::Contains("seq2seq takes a sequence of tokens and another one so far, but the data set "
                                         "has 1 channel of 28x28"),
                       ConfigError);
  Config other = Config::from_text("{name: transformer}");
  CHECK_THROWS_AS(static_cast<void>(chosen_entry(models(), other, "mlp", "the model")
                                        .make(other)
                                        ->make(pairs_of(vocabulary, source_length, target_length))),
                  ConfigError);
  CHECK_THROWS_WITH_AS(translator("{name: seq2seq_transformer, heads: 3}"),
                       doctest::Contains("width: 128 is not an even multiple"), ConfigError);
}

TEST_CASE("padded batches are as short as their longest example") {
  class Made final : public Examples {
   public:
    std::size_t size() const override { return 3; }
    void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const override {
      const auto in = std::get<std::span<std::int64_t>>(inputs), out = std::get<std::span<std::int64_t>>(targets);
      std::iota(in.begin(), in.end(), 0);
      std::ranges::fill(out, -1);
      for (std::size_t i = 0; i < indices.size(); ++i)
        for (std::size_t t = 0; t < indices[i] + 1; ++t) out[i * target_length + t] = 5;
    }
  };
  ExampleBuffer buffer(pairs_of(100, source_length, target_length), std::make_shared<Made>());
  for (const std::uint32_t longest : {0U, 1U, 2U}) {
    const Batch batch = buffer.batch(std::vector<std::uint32_t>{0, longest}, nullptr);
    CHECK(batch.targets.sizes() == torch::IntArrayRef({2, longest + 1}));
    CHECK(batch.inputs.sizes() == torch::IntArrayRef({2, source_length + longest + 1}));
    CHECK(batch.inputs[1][0].item<std::int64_t>() == source_length + target_length);
    CHECK(batch.targets.ge(0).sum().item<std::int64_t>() == 1 + longest + 1);
  }
}

}  // namespace
}  // namespace translation_models_test

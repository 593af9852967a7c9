// What is minimised and what models are judged by, against what one line of arithmetic says.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"

namespace objective_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

DataSet classes_of(std::int64_t classes, std::vector<std::int64_t> sizes, std::vector<Metric> metrics) {
  DataSet data;
  data.name = "made";
  data.shape.targets = {.element = TensorShape::Element::classes, .sizes = std::move(sizes), .classes = classes};
  data.metrics = std::move(metrics);
  return data;
}

DataSet numbers_of(std::vector<std::int64_t> sizes) {
  DataSet data;
  data.name = "made";
  data.shape.targets = {.sizes = std::move(sizes)};
  data.metrics = {rmse_metric(), loss_metric()};
  return data;
}

struct IdentityImpl : torch::nn::Module {
  IdentityImpl() { register_parameter("unused", torch::ones({1})); }
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

/// What a model whose output these are scores.
Score score(const Objective& objective, const torch::Tensor& output, const torch::Tensor& targets) {
  return Model(std::make_shared<IdentityImpl>(), objective).score({output, targets});
}

double value_of(const Objective& objective, const Score& score, const std::string& name) {
  for (const auto& [metric, value] : values_of(objective, score))
    if (metric.name == name) return value;
  FAIL("no metric " << name);
  return 0.0;
}

TEST_CASE("an even guess among C classes: loss ln C, perplexity C, log2 C bits") {
  for (const std::int64_t classes : {2, 65}) {
    const Objective objective = objective_for(
        classes_of(classes, {3}, {loss_metric(), perplexity_metric(), bits_metric("byte"), accuracy_metric()}), 0.0);
    const Score even = score(objective, torch::zeros({4, 3, classes}), torch::ones({4, 3}, torch::kInt64));
    const auto c = static_cast<double>(classes);
    CHECK(even.targets == 12.0);
    CHECK(value_of(objective, even, "loss") == doctest::Approx(std::log(c)));
    CHECK(value_of(objective, even, "perplexity") == doctest::Approx(c));
    CHECK(value_of(objective, even, "bits_per_byte") == doctest::Approx(std::log2(c)));
    CHECK(value_of(objective, even, "accuracy") == 0.0);  // the first of equal logits is the guess
  }
}

TEST_CASE("scores of batches add up to that of all examples, whatever the metric") {
  const Objective objective =
      objective_for(classes_of(20, {}, {accuracy_metric(), top5_accuracy_metric(), perplexity_metric()}), 0.0);
  torch::manual_seed(4);
  const torch::Tensor logits = torch::randn({30, 20}), targets = torch::randint(20, {30}, torch::kInt64);
  Score sum;
  for (const auto& [first, count] : {std::pair{0, 7}, {7, 20}, {27, 3}})
    sum += score(objective, logits.narrow(0, first, count), targets.narrow(0, first, count));
  const Score all = score(objective, logits, targets);
  for (const std::string name : {"accuracy", "top5_accuracy", "perplexity"})
    CHECK(value_of(objective, sum, name) == doctest::Approx(value_of(objective, all, name)).epsilon(1e-6));

  double among_five = 0.0;  // counted one by one
  for (std::int64_t i = 0; i < 30; ++i) {
    const double own = logits[i][targets[i].item<std::int64_t>()].item<double>();
    among_five += logits[i].gt(own).sum().item<std::int64_t>() < 5 ? 1.0 : 0.0;
  }
  CHECK(value_of(objective, all, "top5_accuracy") == among_five / 30.0);
}

TEST_CASE("targets below 0 count nowhere") {
  const Objective objective = objective_for(classes_of(3, {2}, {loss_metric(), accuracy_metric()}), 0.0);
  torch::manual_seed(4);
  const torch::Tensor logits = torch::randn({2, 2, 3});
  const torch::Tensor masked = torch::tensor({0, -1, -1, 2}, torch::kInt64).view({2, 2});
  const torch::Tensor kept = torch::stack({logits[0][0], logits[1][1]}), targets = torch::tensor({0, 2}, torch::kInt64);
  const Score got = score(objective, logits, masked);
  CHECK(got.targets == 2.0);
  CHECK(got.loss_sum == doctest::Approx(2.0 * cross_entropy(kept, targets).item<double>()));
  CHECK(got.sums.at(1) == count_correct(kept, targets).item<double>());
}

TEST_CASE("smoothing spreads a part of every target in training, and changes no test") {
  const DataSet data = classes_of(4, {}, {loss_metric()});
  const Objective plain = objective_for(data, 0.0), smooth = objective_for(data, 0.2);
  torch::manual_seed(4);
  const torch::Tensor logits = torch::randn({6, 4}), targets = torch::randint(4, {6}, torch::kInt64);
  const double own = plain.loss(logits, targets).item<double>();
  const double even = -logits.log_softmax(1).mean().item<double>();
  CHECK(smooth.loss(logits, targets).item<double>() == doctest::Approx(0.8 * own + 0.2 * even).epsilon(1e-6));
  CHECK(score(smooth, logits, targets).loss_sum == score(plain, logits, targets).loss_sum);
  CHECK_THROWS_WITH_AS(objective_for(numbers_of({}), 0.1), doctest::Contains("train.label_smoothing"), ConfigError);
}

TEST_CASE("numbers are learnt by mean square error and judged by its root") {
  const Objective objective = objective_for(numbers_of({2}), 0.0);
  const torch::Tensor output = torch::tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2});
  const Score got = score(objective, output, torch::tensor({1.0, 4.0, 3.0, 8.0}).view({2, 2}));
  CHECK(got.targets == 4.0);
  CHECK(value_of(objective, got, "loss") == 5.0);  // (0 + 4 + 0 + 16)/4
  CHECK(value_of(objective, got, "rmse") == doctest::Approx(std::sqrt(5.0)));
}

TEST_CASE("an output that does not fit the targets is an error that says both shapes, not a broadcast") {
  const Objective classes = objective_for(classes_of(3, {}, {accuracy_metric()}), 0.0);
  const torch::Tensor targets = torch::zeros({4}, torch::kInt64);
  CHECK_THROWS_WITH_AS(classes.loss(torch::zeros({4, 5}), targets),
                       doctest::Contains("has the shape [4, 5], but these data need [4] logits of 3 classes"),
                       ConfigError);
  CHECK_THROWS_AS(classes.loss(torch::zeros({4, 1, 3}), targets), ConfigError);
  CHECK_THROWS_AS(classes.loss(torch::zeros({3}), targets), ConfigError);
  const Objective numbers = objective_for(numbers_of({1}), 0.0);
  CHECK_THROWS_WITH_AS(numbers.loss(torch::zeros({4}), torch::zeros({4, 1})), doctest::Contains("need [4, 1] numbers"),
                       ConfigError);
}

TEST_CASE("a model keeps the objective that it was made with; one without takes its data's") {
  const Objective squares = objective_for(numbers_of({}), 0.0);
  Model own(std::make_shared<IdentityImpl>(), squares), none(std::make_shared<IdentityImpl>());
  CHECK(none.objective().measures.front().metric.name == "accuracy");
  own.learn_by_default(objective_for(classes_of(3, {}, {accuracy_metric()}), 0.0));
  none.learn_by_default(squares);
  CHECK(own.objective().measures.front().metric.name == "rmse");
  CHECK(none.objective().measures.front().metric.name == "rmse");
}

TEST_CASE("mlp gives what targets need: classes, a number, several numbers") {
  const TensorShape classes{.element = TensorShape::Element::classes, .classes = 3};
  for (const auto& [targets, expected] : {std::pair{classes, std::vector<std::int64_t>{5, 3}},
                                          {TensorShape{}, {5}},
                                          {TensorShape{.sizes = {2}}, {5, 2}}}) {
    Config section = Config::from_text("{name: mlp, hidden: [4]}");
    const auto factory = chosen_entry(models(), section, "mlp", "the model").make(section);
    const Model model = factory->make({.inputs = {.sizes = {6}}, .targets = targets});
    CHECK(model.forward(torch::zeros({5, 6})).sizes() == torch::IntArrayRef(expected));
  }
}

TEST_CASE("clipping scales a long gradient to the norm asked for, and leaves a short one") {
  for (const double clip : {0.5, 100.0}) {
    torch::manual_seed(2);
    Model model = model_named("{name: mlp, hidden: [4]}", 1, 4);
    Config section = Config::from_text("{name: sgd, learning_rate: 1, clip_norm: " + std::to_string(clip) + "}");
    const auto optimizer = chosen_entry(optimizers(), section, "sgd", "the optimizer").make(section)->build(model);
    static_cast<void>(model.loss_and_gradient(random_batch(5, 1, 4)));
    const auto before = copy_of(model.replica().values.span());
    double norm = 0.0, step = 0.0;
    for (const float g : model.replica().gradients.span()) norm += double{g} * double{g};
    optimizer->step();
    const auto after = model.replica().values.span();
    for (std::size_t i = 0; i < before.size(); ++i) step += std::pow(double{before[i]} - double{after[i]}, 2);
    REQUIRE(std::sqrt(norm) > 0.5);
    REQUIRE(std::sqrt(norm) < 100.0);
    CHECK(std::sqrt(step) == doctest::Approx(std::min(clip, std::sqrt(norm))).epsilon(1e-4));
  }
}

TEST_CASE("weight decay of matrices only leaves what has one dimension") {
  Model model = model_named("{name: mlp, hidden: [4]}", 1, 4);
  Config section = Config::from_text("{name: adamw, learning_rate: 0.1, weight_decay: 0.5, decay_matrices_only: true}");
  const auto optimizer = chosen_entry(optimizers(), section, "sgd", "the optimizer").make(section)->build(model);
  const auto before = parameters_of(model.module());
  std::ranges::fill(model.replica().gradients.span(), 0.0F);
  optimizer->step();
  std::size_t at = 0;
  for (const torch::Tensor& p : model.trainable()) {
    const torch::Tensor flat = p.detach().flatten();
    for (std::int64_t i = 0; i < flat.numel(); ++i, ++at)
      CHECK(flat[i].item<float>() == doctest::Approx(p.dim() > 1 ? 0.95 * before[at] : before[at]));
  }
}

}  // namespace
}  // namespace objective_test

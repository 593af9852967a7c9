// The table of models: sizes as published, initial values from LibTorch's generator only, images checked.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace models_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

struct Size {
  const char* section;
  int channels, side;
  std::size_t parameters, segments;
};

constexpr Size sizes[] = {{"{name: mnist_cnn}", 1, 28, 27480, 8},
                          {"{name: mlp}", 1, 28, 784 * 128 + 128 + 128 * 10 + 10, 4},
                          {"{name: mlp, hidden: []}", 3, 32, 3072 * 10 + 10, 2},
                          {"{name: mlp, hidden: [5], layer_norm: true}", 1, 4, 16 * 5 + 5 + 2 * 5 + 5 * 10 + 10, 6},
                          {"{name: mlp, hidden: [5, 7]}", 1, 4, 16 * 5 + 5 + 5 * 7 + 7 + 7 * 10 + 10, 6},
                          {"{name: lenet5}", 1, 28, 61706, 10},
                          {"{name: lenet5}", 1, 32, 61706, 10},
                          {"{name: resnet20}", 3, 32, 269722, 59},
                          {"{name: resnet20, norm: group}", 3, 32, 269722, 59},
                          {"{name: resnet18}", 3, 32, 11173962, 62},
                          {"{name: vgg16}", 3, 32, 14728266, 54},
                          {"{name: alexnet}", 3, 32, 2472266, 12}};

TEST_CASE("models have their published numbers of parameters and segments") {
  for (const Size& size : sizes) {
    CAPTURE(size.section);
    const Model model = model_named(size.section, size.channels, size.side);
    CHECK(model.replica().layout.size() == size.parameters);
    CHECK(model.replica().layout.count() == size.segments);
  }
}

TEST_CASE("networks for large images have their published numbers of parameters for 1,000 classes") {
  const ExampleShape imagenet{.inputs = {.sizes = {3, 224, 224}},
                              .targets = {.element = TensorShape::Element::classes, .classes = 1000}};
  for (const auto& [name, parameters, segments] : {std::tuple{"resnet50", std::size_t{25'557'032}, std::size_t{161}},
                                                   {"vgg16", std::size_t{138'357'544}, std::size_t{32}},
                                                   {"alexnet", std::size_t{61'100'840}, std::size_t{16}}}) {
    CAPTURE(name);
    Config section = Config::from_text("{name: " + std::string(name) + "}");
    Model model = chosen_entry(models(), section, "mlp", "the model").make(section)->make(imagenet);
    CHECK(model.replica().layout.size() == parameters);
    CHECK(model.replica().layout.count() == segments);
    const torch::NoGradGuard no_gradient;
    model.module().eval();
    CHECK(model.forward(torch::zeros({1, 3, 224, 224})).sizes() == torch::IntArrayRef({1, 1000}));
  }
  CHECK_THROWS_WITH_AS(model_named("{name: vgg16}", 3, 16), doctest::Contains("at least 32x32 pixels"), ConfigError);
  CHECK(model_named("{name: resnet50}", 3, 32).replica().layout.size() == 25'557'032 - 7'680 - 990 * 2049);
}

TEST_CASE("mnist_cnn's segments are those of the paper's code") {
  const Model model = model_named("{name: mnist_cnn}", 1, 28);
  std::vector<std::size_t> lengths;
  for (const Segment& s : model.replica().layout.segments()) lengths.push_back(s.length);
  CHECK(lengths == std::vector<std::size_t>{90, 10, 1800, 20, 25000, 50, 500, 10});
}

TEST_CASE("every model maps a batch to logits, and equal generators give equal models") {
  for (const Size& size : sizes) {
    CAPTURE(size.section);
    torch::manual_seed(5);
    Model one = model_named(size.section, size.channels, size.side);
    torch::manual_seed(5);
    Model two = model_named(size.section, size.channels, size.side);
    CHECK(replica_hash(one.replica().values.span()) == replica_hash(two.replica().values.span()));
    torch::manual_seed(6);
    Model other = model_named(size.section, size.channels, size.side);
    CHECK(replica_hash(one.replica().values.span()) != replica_hash(other.replica().values.span()));
    one.module().eval();
    const Score score = one.score(random_batch(3, size.channels, size.side));
    CHECK(score.targets == 3.0);
    CHECK(std::isfinite(score.loss_sum));
    CHECK(score.loss_sum / 3.0 < 20.0);
  }
}

TEST_CASE("the number of classes is the data set's") {
  CHECK(model_named("{name: mnist_cnn}", 1, 28, 7).replica().layout.size() == 27480 - 3 * 51);
  CHECK(model_named("{name: resnet20}", 3, 32, 100).replica().layout.size() == 269722 + 90 * 65);
}

TEST_CASE("images that a model cannot take are an error of the configuration that names both") {
  for (const auto& [section, channels, side] : {std::tuple{"{name: mnist_cnn}", 3, 32},
                                                {"{name: mnist_cnn}", 1, 32},
                                                {"{name: lenet5}", 1, 30},
                                                {"{name: resnet18}", 1, 28},
                                                {"{name: resnet20}", 3, 64}}) {
    CAPTURE(section);
    CHECK_THROWS_AS(model_named(section, channels, side), ConfigError);
  }
  CHECK_THROWS_WITH_AS(model_named("{name: mnist_cnn}", 3, 32),
                       doctest::Contains("mnist_cnn takes images with 1 channel of 28x28, but the data set has 3 "
                                         "channels of 32x32"),
                       ConfigError);
}

TEST_CASE("keys out of range are errors") {
  CHECK_THROWS_AS(model_named("{name: mnist_cnn, dropout: 1}", 1, 28), ConfigError);
  CHECK_THROWS_AS(model_named("{name: mlp, hidden: [0]}", 1, 28), ConfigError);
  CHECK_THROWS_AS(model_named("{name: mlp, hidden: [9000000000000000000]}", 1, 28), ConfigError);
  CHECK_THROWS_AS(model_named("{name: lenet5, dropout: 0.5}", 1, 28), ConfigError);
}

}  // namespace
}  // namespace models_test

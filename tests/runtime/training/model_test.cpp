// Model, optimizers and batches: the replica is the module's memory, and nothing that LibTorch computes changes by it.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/error.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/optimizer.hpp"

namespace model_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

/// y = w·x + b on one number, loss (y − t)²/2 summed: gradients by hand.
struct LineImpl : torch::nn::Module {
  LineImpl() : w(register_parameter("w", torch::full({1}, 3.0))), b(register_parameter("b", torch::full({1}, 1.0))) {}
  torch::Tensor forward(const torch::Tensor& x) { return w * x + b; }
  torch::Tensor w, b;
};

Model line_model(const std::shared_ptr<LineImpl>& line) {
  return Model(line,
               {.loss = [](const torch::Tensor& y, const torch::Tensor& t) { return 0.5 * (y - t).square().sum(); },
                .measures = {}});
}
const Batch line_batch{torch::full({1}, 2.0), torch::full({1}, 5.0)};  // y = 7, y − t = 2: gradient (4, 2), loss 2

std::unique_ptr<Optimizer> optimizer_for(Model& model, const std::string& section) {
  Config config = Config::from_text(section);
  const auto plan = chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config);
  config.document().throw_if_invalid();
  return plan->build(model);
}

TEST_CASE("the block holds the initial parameters, in the module's order") {
  torch::manual_seed(1);
  Model model = model_named("{name: resnet20}", 3, 32);
  torch::manual_seed(1);
  const auto line = std::make_shared<LineImpl>();
  const Model lines = line_model(line);
  CHECK(copy_of(lines.replica().values.span()) == std::vector<float>{3.0F, 1.0F});
  CHECK(copy_of(model.replica().values.span()) == parameters_of(model.module()));
  CHECK(lines.replica().layout[0].name == "w");
  CHECK(model.replica().layout[0].shape == std::vector<std::int64_t>{16, 3, 3, 3});
}

TEST_CASE("the block is the parameters, and its gradient theirs") {
  const auto line = std::make_shared<LineImpl>();
  Model model = line_model(line);
  CHECK(model.loss_and_gradient(line_batch) == 2.0);
  CHECK(copy_of(model.replica().gradients.span()) == std::vector<float>{4.0F, 2.0F});
  CHECK(line->w.grad().item<float>() == 4.0F);

  model.replica().values.span()[1] = -2.0F;  // y = 4, y − t = −1
  CHECK(line->forward(line_batch.inputs).item<float>() == 4.0F);
  CHECK(model.loss_and_gradient(line_batch) == 0.5);
  CHECK(copy_of(model.replica().gradients.span()) == std::vector<float>{-2.0F, -1.0F});  // not added to the last one
  {
    const torch::NoGradGuard no_gradient;
    line->w.fill_(10.0);
  }
  CHECK(model.replica().values.span()[0] == 10.0F);
}

TEST_CASE("the module outlives its model") {
  const auto line = std::make_shared<LineImpl>();
  { Model model = line_model(line); }
  CHECK(line->forward(torch::full({1}, 2.0)).item<float>() == 7.0F);
}

TEST_CASE("sgd is x - eta g, with momentum and weight decay as stated") {
  const auto line = std::make_shared<LineImpl>();
  Model model = line_model(line);
  model.loss_and_gradient(line_batch);
  optimizer_for(model, "{name: sgd, learning_rate: 0.25}")->step();
  CHECK(copy_of(model.replica().values.span()) == std::vector<float>{2.0F, 0.5F});

  // g + lambda x = (5, 2.25) with lambda 0.5; v is that at the first step and 1.5 times that at the second.
  model.replica().values.span()[0] = 2.0F, model.replica().values.span()[1] = 0.5F;
  model.replica().gradients.span()[0] = 4.0F, model.replica().gradients.span()[1] = 2.0F;
  const auto momentum = optimizer_for(model, "{name: sgd, learning_rate: 1, momentum: 0.5, weight_decay: 0.5}");
  momentum->step();
  CHECK(copy_of(model.replica().values.span()) == std::vector<float>{-3.0F, -1.75F});
  momentum->set_learning_rate(2.0);
  momentum->step();  // g + lambda x = (2.5, 1.125); v = 0.5 (5, 2.25) + that = (5, 2.25)
  CHECK(copy_of(model.replica().values.span()) == std::vector<float>{-13.0F, -6.25F});
}

TEST_CASE("a step leaves tensors that are no parameters alone, and every optimizer moves against the gradient") {
  for (const OptimizerEntry& entry : optimizers()) {
    CAPTURE(entry.name);
    const auto line = std::make_shared<LineImpl>();
    Model model = line_model(line);
    const auto optimizer = optimizer_for(model, "{name: " + std::string(entry.name) + "}");
    const double before = model.loss_and_gradient(line_batch);
    optimizer->step();
    CHECK(model.loss_and_gradient(line_batch) < before);
    CHECK(model.replica().values.span()[0] < 3.0F);
    CHECK(model.replica().values.span()[1] < 1.0F);
  }
  Model model = line_model(std::make_shared<LineImpl>());
  CHECK_THROWS_AS(optimizer_for(model, "{name: sgd, nesterov: true}"), ConfigError);
  CHECK_THROWS_AS(optimizer_for(model, "{learning_rate: 0}"), ConfigError);
}

TEST_CASE("training steps equal those of a plain LibTorch loop bit for bit, dropout included") {
  torch::manual_seed(11);
  torch::nn::Sequential plain(torch::nn::Flatten(), torch::nn::Linear(64, 33), torch::nn::ReLU(),
                              torch::nn::Dropout(0.5), torch::nn::Linear(33, 10));
  torch::manual_seed(11);
  torch::nn::Sequential bound(torch::nn::Flatten(), torch::nn::Linear(64, 33), torch::nn::ReLU(),
                              torch::nn::Dropout(0.5), torch::nn::Linear(33, 10));
  Model model(bound);
  const auto ours = optimizer_for(model, "{name: sgd, learning_rate: 0.1, momentum: 0.9}");
  torch::optim::SGD theirs(plain->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  std::vector<double> our_losses, their_losses;
  torch::manual_seed(12);
  for (std::uint64_t k = 0; k < 5; ++k) {
    our_losses.push_back(model.loss_and_gradient(random_batch(9, 1, 8, k)));
    ours->step();
  }
  torch::manual_seed(12);
  for (std::uint64_t k = 0; k < 5; ++k) {
    const Batch batch = random_batch(9, 1, 8, k);
    theirs.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(plain->forward(batch.inputs), batch.targets);
    loss.backward();
    theirs.step();
    their_losses.push_back(loss.item<double>());
  }
  CHECK(our_losses == their_losses);
  CHECK(copy_of(model.replica().values.span()) == parameters_of(*plain));
}

TEST_CASE("gradients are announced once a segment, last layer first, when they are complete") {
  Model model = model_named("{name: mlp, hidden: [6, 5]}", 1, 4);
  const Batch batch = random_batch(4, 1, 4);
  model.loss_and_gradient(batch);
  const std::vector<float> complete = copy_of(model.replica().gradients.span());
  std::vector<SegmentId> order;
  bool all_complete = true;
  model.on_gradient([&](SegmentId s) {
    order.push_back(s);
    const Segment& segment = model.replica().layout[s];
    all_complete = all_complete && std::ranges::equal(model.replica().gradients.segment(segment),
                                                      std::span(complete).subspan(segment.offset, segment.length));
  });
  model.loss_and_gradient(batch);
  CHECK(all_complete);
  REQUIRE(order.size() == 6);
  CHECK(std::ranges::max(std::span(order).last(2)) <= 1);   // the first layer's two segments come last
  CHECK(std::ranges::min(std::span(order).first(2)) >= 4);  // the last layer's come first
  std::ranges::sort(order);
  CHECK(order == std::vector<SegmentId>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("included buffers are segments behind the parameters, without gradient, and stay the module's buffers") {
  Model model = model_named("{name: resnet20}", 3, 32);
  CHECK(model.other_state().size() == 19 * 3);
  model.include_buffers();
  const Layout& layout = model.replica().layout;
  CHECK(layout.count() == 59 + 19 * 2);
  CHECK(layout.size() == 269722 + 1376);
  CHECK(model.trainable().size() == 59);
  CHECK(model.other_state().size() == 19);  // the counters of batches are integers and stay outside
  const Segment& running_mean = layout[59];
  CHECK(running_mean.name == "bn.running_mean");
  CHECK(std::ranges::all_of(model.replica().values.segment(running_mean), [](float m) { return m == 0.0F; }));
  model.loss_and_gradient(random_batch(4, 3, 32));
  CHECK(std::ranges::any_of(model.replica().values.segment(running_mean), [](float m) { return m != 0.0F; }));
  CHECK(std::ranges::all_of(model.replica().gradients.segment(running_mean), [](float g) { return g == 0.0F; }));
}

TEST_CASE(
    "with group norm a network keeps nothing of its batches, and what it makes of an image is the image's alone") {
  Model model = model_named("{name: resnet20, norm: group}", 3, 32);
  CHECK(model.other_state().empty());
  const Batch batch = random_batch(4, 3, 32);
  const torch::Tensor all = model.forward(batch.inputs), one = model.forward(batch.inputs.slice(0, 1, 2));
  CHECK(torch::allclose(all.slice(0, 1, 2), one, 1e-5, 1e-6));
}

/// y = (w·x + b)·w, w registered twice, and a constant.
struct TiedImpl : torch::nn::Module {
  TiedImpl()
      : line(register_module("line", std::make_shared<LineImpl>())),
        w(register_parameter("again", line->w)),
        constant(register_parameter("constant", torch::ones({2}), false)) {}
  torch::Tensor forward(const torch::Tensor& x) { return line->forward(x) * w; }
  std::shared_ptr<LineImpl> line;
  torch::Tensor w, constant;
};

TEST_CASE("a shared parameter is one segment with one gradient, a frozen one is none") {
  const auto tied = std::make_shared<TiedImpl>();
  Model model(tied, {.loss = [](const torch::Tensor& y, const torch::Tensor&) { return y.sum(); }, .measures = {}});
  CHECK(model.replica().layout.size() == 2);
  CHECK(model.other_state().size() == 1);
  CHECK(model.loss_and_gradient(line_batch) == 21.0);  // (3·2 + 1)·3; derivatives 2 w x + b = 13 and w = 3
  std::vector<float> gradient = copy_of(model.replica().gradients.span());
  std::ranges::sort(gradient);
  CHECK(gradient == std::vector<float>{3.0F, 13.0F});
}

TEST_CASE("modules that cannot be trained are errors of the configuration") {
  struct NothingImpl : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& x) { return x; }
  };
  struct DoubleImpl : torch::nn::Module {
    DoubleImpl() { register_parameter("wide", torch::ones({2}, torch::kFloat64)); }
    torch::Tensor forward(const torch::Tensor& x) { return x; }
  };
  CHECK_THROWS_AS(Model(std::make_shared<NothingImpl>()), ConfigError);
  CHECK_THROWS_WITH_AS(Model(std::make_shared<DoubleImpl>()), doctest::Contains("'wide' is Double"), ConfigError);
}

TEST_CASE("scores are sums over targets; a sequence's tokens are targets") {
  const torch::Tensor logits =
      torch::tensor({1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 1.0}).view({2, 2, 3});
  const torch::Tensor targets = torch::tensor({0, 1, 0, 2}, torch::kInt64).view({2, 2});
  CHECK(count_correct(logits, targets).item<double>() == 3.0);
  CHECK(count_correct(logits.view({4, 3}), targets.view({4})).item<double>() == 3.0);
  CHECK(torch::equal(cross_entropy(logits, targets), cross_entropy(logits.view({4, 3}), targets.view({4}))));
}

TEST_CASE("a saved model is read back equal") {
  const auto file = std::filesystem::temp_directory_path() / "hearsay_model_test.pt";
  torch::manual_seed(1);
  torch::nn::Sequential layers(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
  const Model model(layers);
  model.save(file);
  torch::nn::Sequential other(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
  torch::load(other, file.string());
  std::filesystem::remove(file);
  CHECK(parameters_of(*other) == copy_of(model.replica().values.span()));
  CHECK_THROWS_AS(model.save("/nonexistent-folder/model.pt"), DataError);
}

TEST_CASE("a saved model of which a byte is another one, or missing, is refused") {
  const auto file = std::filesystem::temp_directory_path() / "hearsay_damaged_model_test.pt";
  Model model(torch::nn::Sequential(torch::nn::Linear(4, 3)));
  model.save(file, "a run");
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto loads = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      model.load(file);
    } catch (const DataError&) {
      return false;
    }
    return true;
  };
  CHECK(loads(whole));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    CHECK_FALSE(loads(damaged));
  }
  for (std::size_t left = 0; left < whole.size(); left += 7) CHECK_FALSE(loads(whole.substr(0, left)));
  CHECK_FALSE(loads(whole + '\0'));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH_AS(model.load(file), doctest::Contains("cannot be read: No such file or directory; name the model"),
                       DataError);
}

TEST_CASE("batches are the sampler's images, normalised, with their labels, in a buffer that is used again") {
  const ImageData data = random_image_data(10, 7, 2, 3);
  const DataSet set = image_classification(data);
  TrainingBatches batches(set, Sampler({4, 2, 9}, 5, 2, false, 1), false, 1);
  CHECK(batches.iterations_per_epoch() == 3);
  const std::vector<std::vector<std::size_t>> expected{{4, 2}, {9, 4}, {2}, {9, 4}};
  for (const auto& indices : expected) {
    const Batch batch = batches.next();
    REQUIRE(batch.inputs.sizes() == torch::IntArrayRef({static_cast<std::int64_t>(indices.size()), 2, 3, 3}));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      CHECK(batch.targets[static_cast<std::int64_t>(i)].item<std::int64_t>() == data.train.labels[indices[i]]);
      const std::uint8_t pixel = data.train.pixels[indices[i] * 18 + 13];  // channel 1, row 1, column 1
      CHECK(batch.inputs[static_cast<std::int64_t>(i)][1][1][1].item<float>() ==
            doctest::Approx((pixel / 255.0 - 0.5) / 0.25).epsilon(1e-6));
    }
  }
  const TestSet test = test_set(set);
  CHECK(test.size == 7);
  CHECK(test.batch(5, 2).targets[1].item<std::int64_t>() == data.test.labels[6]);
}

TEST_CASE("inputs that are not finite are said to be the inputs', with their number and place") {
  const Batch batch{torch::zeros({4, 5}), torch::zeros({4}, torch::kInt64)};
  CHECK_NOTHROW(require_finite_inputs(batch, 0, 0));
  batch.inputs[1][2] = std::numeric_limits<float>::quiet_NaN();
  batch.inputs[3][0] = -std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(require_finite_inputs(batch, 2, 7), doctest::Contains("rank 2, iteration 7: 2 of 20 inputs"),
                       DataError);
  CHECK_NOTHROW(require_finite_inputs({torch::zeros({2}, torch::kInt64), {}}, 0, 0));  // words, say
}

}  // namespace
}  // namespace model_test

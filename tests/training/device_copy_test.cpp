// A model that computes on a copy of its replica trains like one that computes in it, bit for bit. The copy lies in the
// processor's memory here: what a GPU adds is another memory, in which the same calls of LibTorch put their results.
#include "tests/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.hpp"
#include "runtime/training/optimizer.hpp"

namespace {

using namespace hearsay;
using namespace hearsay::test;

Model resnet(bool with_buffers, bool on_copy) {
  torch::manual_seed(21);
  Model model = model_named("{name: resnet20}", 3, 32);
  if (with_buffers) model.include_buffers();
  if (on_copy) model.compute_on(torch::kCPU);
  return model;
}

std::unique_ptr<Optimizer> momentum_for(const Model& model) {
  Config config = Config::from_text("{name: sgd, learning_rate: 0.1, momentum: 0.9}");
  return chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config)->build(model);
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> values, gradients, others;
  bool operator==(const Trained&) const = default;
};

/// Three steps with what an exchange does in between: it changes x and reads g.
Trained train(Model model) {
  const auto optimizer = momentum_for(model);
  Trained result;
  for (std::uint64_t k = 0; k < 3; ++k) {
    result.losses.push_back(model.loss_and_gradient(random_batch(3, 3, 32, k)));
    for (float& x : model.replica().values.span()) x *= 0.75F;
    for (float& g : model.replica().gradients.span()) g *= 0.5F;
    optimizer->step();
  }
  result.losses.push_back(model.score(random_batch(5, 3, 32, 9)).loss_sum);
  result.values = copy_of(model.replica().values.span());
  result.gradients = copy_of(model.replica().gradients.span());
  for (const torch::Tensor& tensor : model.other_state()) result.others.push_back(tensor.sum().item<float>());
  return result;
}

TEST_CASE("training on a copy is training in the replica") {
  for (const bool with_buffers : {false, true}) {
    CAPTURE(with_buffers);
    const Trained direct = train(resnet(with_buffers, false));
    CHECK(train(resnet(with_buffers, true)) == direct);
    CHECK(direct.values != copy_of(resnet(with_buffers, false).replica().values.span()));
  }
}

TEST_CASE("on a copy the module's tensors lie outside the replica, the optimizer's in it") {
  Model model = resnet(false, true);
  const auto block = model.replica().values.span();
  const auto inside = [&](const torch::Tensor& t) {
    return t.data_ptr<float>() >= block.data() && t.data_ptr<float>() < block.data() + block.size();
  };
  CHECK(std::ranges::none_of(model.module().parameters(), inside));
  CHECK(std::ranges::all_of(model.trainable(), inside));
  CHECK(parameters_of(model.module()) == copy_of(block));
}

TEST_CASE("a segment is announced when its gradient has come back, and is not fetched again") {
  Model direct = resnet(false, false), copied = resnet(false, true);
  const Batch batch = random_batch(3, 3, 32);
  direct.loss_and_gradient(batch);
  std::size_t announced = 0;
  bool equal = true;
  copied.on_gradient([&](SegmentId s) {
    ++announced;
    const Segment& segment = copied.replica().layout[s];
    const std::span<float> g = copied.replica().gradients.segment(segment);
    equal = equal && std::ranges::equal(g, direct.replica().gradients.segment(segment));
    std::ranges::fill(g, 1.0F);  // an exchange that has taken it
  });
  copied.loss_and_gradient(batch);
  CHECK(announced == copied.trainable().size());
  CHECK(equal);
  CHECK(std::ranges::all_of(copied.replica().gradients.span(), [](float g) { return g == 1.0F; }));
}

TEST_CASE("the file of a model on a copy is the file of the replica") {
  const auto file = std::filesystem::temp_directory_path() / "hearsay_device_copy_test.pt";
  torch::nn::Sequential layers(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3), torch::nn::Linear(3, 2));
  Model model(layers);
  model.compute_on(torch::kCPU);
  std::ranges::fill(model.replica().values.span(), 0.25F);  // not on the copy yet
  model.save(file);
  torch::nn::Sequential other(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3), torch::nn::Linear(3, 2));
  torch::load(other, file.string());
  std::filesystem::remove(file);
  CHECK(parameters_of(*other) == copy_of(model.replica().values.span()));
}

TEST_CASE("where LibTorch finds no GPU, cuda is refused with the remedy") {
  CHECK(device_for("cpu", 3).is_cpu());
  if (torch::cuda::device_count() > 0) {
    CHECK(device_for("cuda", static_cast<int>(torch::cuda::device_count())).index() == 0);
    return;
  }
  CHECK_THROWS_WITH_AS(device_for("cuda", 0), doctest::Contains("finds no GPU"), CommunicationError);
}

}  // namespace

// A model that lives on a device trains like one in the processor's memory, bit for bit: on an emulated one, whose
// memory is open to LibTorch when it is the model's turn. What a GPU adds is that LibTorch's calls run there, too.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "tests/support/emulated_device.hpp"

namespace device_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

enum class Lives { on_processor, on_device };

void settle(Model& model, Lives lives) {
  if (lives == Lives::on_device) model.live_on(emulated_device(5), torch::kCPU);
}

Model resnet(bool with_buffers, Lives lives) {
  torch::manual_seed(21);
  Model model = model_named("{name: resnet20}", 3, 32);
  if (with_buffers) model.include_buffers();
  settle(model, lives);
  return model;
}

std::vector<float> values_of(Model& model) { return fetched(*model.replica().device, model.replica().values.span()); }
std::vector<float> gradients_of(Model& model) {
  return fetched(*model.replica().device, model.replica().gradients.span());
}

std::unique_ptr<Optimizer> momentum_for(Model& model) {
  Config config = Config::from_text("{name: sgd, learning_rate: 0.1, momentum: 0.9}");
  return chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config)->build(model);
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> values, gradients, others;
  bool operator==(const Trained&) const = default;
};

/// Three steps with what an exchange does in between: it changes x.
Trained train(Model model) {
  const auto optimizer = momentum_for(model);
  Parameters& replica = model.replica();
  Trained result;
  for (std::uint64_t k = 0; k < 3; ++k) {
    result.losses.push_back(model.loss_and_gradient(random_batch(3, 3, 32, k)));
    replica.device->mix_row(0.75F, {}, replica.values.span());
    optimizer->step();
  }
  result.losses.push_back(model.score(random_batch(5, 3, 32, 9)).loss_sum);
  result.values = values_of(model);
  result.gradients = gradients_of(model);
  for (const torch::Tensor& tensor : model.other_state()) result.others.push_back(tensor.sum().item<float>());
  return result;
}

TEST_CASE("training on a device is training on the processor") {
  for (const bool with_buffers : {false, true}) {
    CAPTURE(with_buffers);
    const Trained here = train(resnet(with_buffers, Lives::on_processor));
    CHECK(train(resnet(with_buffers, Lives::on_device)) == here);
    Model untrained = resnet(with_buffers, Lives::on_processor);
    CHECK(here.values != values_of(untrained));
  }
}

TEST_CASE("on a device the module's tensors are the replica's memory") {
  Model model = resnet(true, Lives::on_device);
  const auto block = model.replica().values.span();
  const auto inside = [&](const torch::Tensor& t) {
    return t.data_ptr<float>() >= block.data() && t.data_ptr<float>() < block.data() + block.size();
  };
  CHECK(std::ranges::all_of(model.module().parameters(), inside));
  CHECK(std::ranges::all_of(model.trainable(), inside));
  const std::vector<float> values = values_of(model);
  const ComputeSlice slice(*model.replica().device);
  const std::vector<float> parameters = parameters_of(model.module());
  CHECK(std::ranges::equal(parameters, std::span(values).first(parameters.size())));  // the buffers are behind them
}

TEST_CASE("a segment is announced when its gradient can be fetched, and it is the exchange's turn") {
  Model here = resnet(false, Lives::on_processor), there = resnet(false, Lives::on_device);
  const Batch batch = random_batch(3, 3, 32);
  here.loss_and_gradient(batch);
  std::size_t announced = 0;
  bool equal = true;
  Parameters& replica = there.replica();
  there.on_gradient([&](SegmentId s) {
    ++announced;
    const auto g = fetched(*replica.device, replica.gradients.segment(replica.layout[s]));
    equal = equal && std::ranges::equal(g, here.replica().gradients.segment(replica.layout[s]));
  });
  there.loss_and_gradient(batch);
  CHECK(announced == there.trainable().size());
  CHECK(equal);
}

TEST_CASE("the file of a model on a device is read like any other") {
  const auto file = std::filesystem::temp_directory_path() / "hearsay_device_test.pt";
  const auto layers = [] {
    return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3), torch::nn::Linear(3, 2));
  };
  Model model(layers());
  settle(model, Lives::on_device);
  const std::vector<float> quarters(model.replica().layout.size(), 0.25F);
  model.replica().device->put(std::as_bytes(std::span(quarters)), model.replica().values.span());
  model.save(file);
  torch::nn::Sequential other = layers();
  torch::load(other, file.string());
  std::filesystem::remove(file);
  CHECK(parameters_of(*other) == quarters);
}

}  // namespace
}  // namespace device_test

// A scripted module trains like the same layers written in C++, bit for bit, and comes back as a scripted module.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>
#include <torch/script.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"

namespace torchscript_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

namespace fs = std::filesystem;

constexpr int side = 4, classes = 10;

/// Removed at the end.
struct File {
  explicit File(const std::string& name) : path(fs::temp_directory_path() / ("hearsay_torchscript_test_" + name)) {}
  ~File() { fs::remove(path); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  fs::path path;
};

/// What torch.jit.script makes of a linear layer in a part of its own, behind dropout, with a buffer that counts.
torch::jit::Module scripted(const std::string& body) {
  torch::jit::Module net("Net"), part("Part");
  torch::manual_seed(1);
  part.register_parameter("weight", (torch::randn({classes, side * side}) * 0.1).requires_grad_(), false);
  part.register_parameter("bias", torch::zeros({classes}).requires_grad_(), false);
  net.register_module("head", part);
  net.register_buffer("calls", torch::zeros({1}));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define(body);
  return net;
}

const std::string linear = R"(
  def forward(self, x):
    self.calls.add_(1.0)
    x = torch.dropout(x.flatten(1), 0.5, self.training)
    return torch.linear(x, self.head.weight, self.head.bias)
)";

Model model_of(const fs::path& file, const ExampleShape& shape) {
  Config section = Config::from_text("{name: torchscript, path: " + file.string() + "}");
  const auto factory = chosen_entry(models(), section, "mlp", "the model").make(section);
  section.document().throw_if_invalid();
  return factory->make(shape);
}

const ExampleShape images = shape_of(random_images(1, 1, side, 1));

TEST_CASE("parameters are segments by their names, buffers are buffers, and both modes work") {
  const File file("names.pt");
  scripted(linear).save(file.path.string());
  Model model = model_of(file.path, images);
  CHECK(model.replica().layout.count() == 2);
  CHECK(model.replica().layout[0].name == "head.weight");
  CHECK(model.replica().layout[1].name == "head.bias");
  REQUIRE(model.other_state().size() == 1);
  const torch::Tensor x = random_batch(3, 1, side).inputs;
  CHECK_FALSE(torch::equal(model.forward(x), model.forward(x)));  // dropout
  model.module().eval();
  CHECK(torch::equal(model.forward(x), model.forward(x)));
  CHECK(model.other_state()[0].item<float>() == 5.0F);  // one of them to try it out
}

TEST_CASE("it learns like the same layers in C++, and what is saved is read back with what it has learnt") {
  const File file("learn.pt"), saved("saved.pt");
  scripted(linear).save(file.path.string());
  Model model = model_of(file.path, images);
  torch::nn::Sequential same(torch::nn::Flatten(), torch::nn::Dropout(0.5), torch::nn::Linear(side * side, classes));
  {
    const torch::NoGradGuard no_gradient;
    same->parameters()[0].copy_(model.trainable()[0]);
    same->parameters()[1].copy_(model.trainable()[1]);
  }
  Model reference(same);
  for (Model* trained : {&model, &reference}) {
    Config section = Config::from_text("{name: adam, learning_rate: 0.01}");
    const auto optimizer = chosen_entry(optimizers(), section, "sgd", "the optimizer").make(section)->build(*trained);
    torch::manual_seed(5);
    for (std::uint64_t k = 0; k < 10; ++k) {
      static_cast<void>(trained->loss_and_gradient(random_batch(6, 1, side, k)));
      optimizer->step();
    }
  }
  CHECK(copy_of(model.replica().values.span()) == copy_of(reference.replica().values.span()));

  model.save(saved.path);
  torch::jit::Module back = torch::jit::load(saved.path.string());
  back.eval();
  model.module().eval();
  const torch::Tensor x = random_batch(3, 1, side).inputs;
  CHECK(torch::equal(back.forward({x}).toTensor(), model.forward(x)));
  CHECK_THROWS_AS(model.save("/nonexistent-folder/model.pt"), DataError);
}

TEST_CASE("what cannot be trained is an error that names the file and says what is wrong") {
  const File file("wrong.pt");
  const auto refusal = [&](const std::string& body, const ExampleShape& shape) -> std::string {
    scripted(body).save(file.path.string());
    try {
      static_cast<void>(model_of(file.path, shape));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](const std::string& message, const std::string& part) {
    return message.find(file.path.string()) != std::string::npos && message.find(part) != std::string::npos;
  };
  CHECK(says(refusal("def forward(self, x, y):\n  return x + y\n", images), "cannot take a tensor of float"));
  CHECK(says(refusal("def forward(self, x):\n  return x, x\n", images), "give one tensor back"));
  CHECK(says(refusal("def forward(self, x):\n  return torch.matmul(x.flatten(1), self.head.weight)\n", images),
             "its forward cannot take"));
  CHECK(says(refusal("def forward(self, x):\n  return x.flatten(1)\n", images),
             "gives float [2, 16], but these data need float [2, 10]"));
  const TensorShape tokens{.element = TensorShape::Element::classes, .sizes = {16}, .classes = 10};
  CHECK(says(refusal(linear, {.inputs = tokens, .targets = tokens}), "tensor of long"));

  std::ofstream(file.path) << "no module";
  CHECK_THROWS_WITH_AS(model_of(file.path, images), doctest::Contains("is no scripted module"), DataError);
  CHECK_THROWS_WITH_AS(model_of("/nowhere.pt", images), doctest::Contains("/nowhere.pt: cannot be read: No such"),
                       DataError);
  Config section = Config::from_text("{name: torchscript}");
  const auto factory = chosen_entry(models(), section, "mlp", "the model").make(section);
  CHECK_THROWS_WITH_AS(static_cast<void>(factory->make(images)), doctest::Contains("model.path is empty"), ConfigError);
}

}  // namespace
}  // namespace torchscript_test

// torchscript: a module that Python has written with `torch.jit.script(net).save(file)` or `torch.jit.trace`.
//   outputs = forward(inputs): logits (B, targets…, C) for classes and tokens, (B, targets…) for numbers
// Its parameters are segments by their names, and begin with the file's values; its buffers are buffers; `training` is
// set in it where it is trained and cleared where it is tested, in all parts. The averaged model is saved as a scripted
// module again, which Python loads with `torch.jit.load`.
// Deviates from nothing. Cost: that of the module; the file is read once on every rank.
#include <torch/script.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/models/models.hpp"
#include "base/error.hpp"
#include "base/regular_file.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

/// Without LibTorch's stack traces.
std::string cause_of(const std::exception& error) {
  constexpr std::size_t most = 300;
  const auto* const ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours != nullptr ? ours->what_without_backtrace() : error.what();
  // The interpreter's own trace has the cause in its last line.
  text.erase(text.find_last_not_of(" \n") + 1);
  if (text.find("Traceback of TorchScript") != std::string::npos) text.erase(0, text.rfind('\n') + 1);
  return text.size() > most ? text.substr(0, most) + " …" : text;
}

/// The scripted module in the shape of LibTorch's C++ modules: the same tensors under the same names.
class ScriptedImpl final : public torch::nn::Module, public OwnFormat {
 public:
  ScriptedImpl(torch::jit::Module script, std::string file) : script_(std::move(script)), file_(std::move(file)) {
    adopt(script_, *this);
  }
  torch::Tensor forward(const torch::Tensor& inputs) {
    try {
      return script_.forward({inputs}).toTensor();
    } catch (const std::exception& error) {
      std::ostringstream sizes;
      sizes << inputs.sizes();
      throw ConfigError(file_ + ": its forward cannot take a tensor of " + std::string(inputs.dtype().name()) + " " +
                        sizes.str() + " alone and give one tensor back: " + cause_of(error));
    }
  }
  void train(bool on = true) override {
    torch::nn::Module::train(on);
    script_.train(on);
  }
  std::string bytes(const std::map<std::string, std::string>& texts) const override {
    std::ostringstream file;
    script_.save(file, {texts.begin(), texts.end()});
    return std::move(file).str();
  }

 private:
  static void adopt(const torch::jit::Module& from, torch::nn::Module& to) {
    for (const auto& item : from.named_parameters(false))
      to.register_parameter(item.name, item.value, item.value.requires_grad());
    for (const auto& item : from.named_buffers(false)) to.register_buffer(item.name, item.value);
    for (const auto& child : from.named_children())
      adopt(child.value, *to.register_module(child.name, std::make_shared<torch::nn::Module>(child.name)));
  }

  torch::jit::Module script_;
  std::string file_;
};

torch::Tensor zeros_of(const TensorShape& shape, std::int64_t count) {
  std::vector<std::int64_t> sizes{count};
  sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
  return torch::zeros(sizes, shape.element == TensorShape::Element::classes ? torch::kInt64 : torch::kFloat32);
}

/// Throws ConfigError unless the module makes of inputs what targets need.
void try_out(ScriptedImpl& module, const ExampleShape& shape, const std::string& file) {
  const torch::NoGradGuard no_gradient;
  constexpr std::int64_t examples = 2;
  module.eval();
  torch::Tensor inputs = zeros_of(shape.inputs, examples);
  if (shape.inputs.element == TensorShape::Element::classes) inputs[1].fill_(shape.inputs.classes - 1);
  const torch::Tensor output = module.forward(inputs);
  module.train();
  std::vector<std::int64_t> wanted = zeros_of(shape.targets, examples).sizes().vec();
  if (shape.targets.element == TensorShape::Element::classes) wanted.push_back(shape.targets.classes);
  if (output.sizes() == torch::IntArrayRef(wanted) && output.is_floating_point()) return;
  std::ostringstream text;
  text << file << ": for " << examples << " examples its forward gives " << output.dtype().name() << " "
       << output.sizes() << ", but these data need float " << torch::IntArrayRef(wanted)
       << "; fit the module to the data";
  throw ConfigError(text.str());
}

class TorchScriptFactory final : public ModelFactory {
 public:
  explicit TorchScriptFactory(Config& model)
      : file_(model.path("path", "", "the file that torch.jit.script(net).save(…) has written")) {}
  Model make(const ExampleShape& shape) const override {
    if (file_.empty())
      throw ConfigError(
          "model.path is empty: say which file has the module (`--set model.path=net.pt`); analysis/export_model.py "
          "makes examples");
    const auto module = std::make_shared<ScriptedImpl>(read(), file_.string());
    try_out(*module, shape, file_.string());
    return Model(module);
  }

 private:
  torch::jit::Module read() const {
    const RegularFile plain(file_, "name a file that torch.jit.script(net).save(…) has written");
    try {
      return torch::jit::load(file_.string(), torch::kCPU);
    } catch (const std::exception& error) {
      throw DataError(file_.string() + ": is no scripted module: " + cause_of(error) +
                      "; write one with torch.jit.script(net).save(…)");
    }
  }

  fs::path file_;
};

}  // namespace

ModelEntry torchscript_model() {
  return {.name = "torchscript",
          .summary = "a module from Python, saved by torch.jit.script or torch.jit.trace",
          .equation = "outputs = forward(inputs)",
          .cost = "that of the module",
          .citation = "",
          .make = [](Config& model) -> std::unique_ptr<ModelFactory> {
            return std::make_unique<TorchScriptFactory>(model);
          }};
}

}  // namespace hearsay

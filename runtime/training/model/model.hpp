#pragma once
// A module of LibTorch whose parameters lie in a replica: what the optimizer moves and what the exchange mixes is one
// and the same memory.
//
//   auto net = MnistCnn(options);          any torch::nn::Module with  Tensor forward(Tensor)
//   hearsay::Model model(net);             learns what its data set asks for; alone, to classify
#include <torch/torch.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/parameters.hpp"
#include "runtime/training/model/objective.hpp"

namespace hearsay {

/// A module that is saved in a format of its own.
class OwnFormat {
 public:
  virtual ~OwnFormat() = default;
  /// What its file holds, these texts under their names included. May throw what LibTorch throws.
  virtual std::string bytes(const std::map<std::string, std::string>& texts) const = 0;
};

/// A module bound to a replica. Move-only. The module's tensors keep the replica's memory alive, so that a program may
/// go on using its module after training.
class Model {
 public:
  template <class Module>
  explicit Model(std::shared_ptr<Module> module) : Model(module, forward_of(module), std::nullopt) {}
  template <class Module>
  Model(std::shared_ptr<Module> module, Objective objective)
      : Model(module, forward_of(module), std::optional(std::move(objective))) {}
  template <class Module>
  explicit Model(const torch::nn::ModuleHolder<Module>& module) : Model(module.ptr()) {}
  template <class Module>
  Model(const torch::nn::ModuleHolder<Module>& module, Objective objective)
      : Model(module.ptr(), std::move(objective)) {}

  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;

  /// x and g: every trainable parameter is a segment, in the module's order; its gradient lies at the same offset.
  Parameters& replica() { return *replica_; }
  const Parameters& replica() const { return *replica_; }
  /// Makes the floating-point buffers (running means and variances) segments of the replica too, behind the parameters:
  /// they are then sent and mixed like these. Their gradient is 0. Call it before `trainable`.
  void include_buffers();
  /// Moves replica and module to a device, which is `where` to LibTorch: passes run there from now on. Call it before
  /// `trainable` and `on_gradient`. Throws CommunicationError if there is no room.
  void live_on(std::shared_ptr<Device> device, torch::Device where);

  /// The trainable parameters in the replica, in the order of the segments: what an optimizer works on.
  const std::vector<torch::Tensor>& trainable() const { return trainable_; }
  /// All other state: buffers that are not in the replica and parameters that need no gradient.
  const std::vector<torch::Tensor>& other_state() const { return other_state_; }
  torch::nn::Module& module() { return *module_; }
  /// What it was made with; for a model that was made without, what `learn_by_default` was told; else classification:
  /// mean cross entropy, and the largest logit counts.
  const Objective& objective() const { return objective_; }
  void learn_by_default(Objective objective) {
    if (!own_objective_) objective_ = std::move(objective);
  }

  /// Keeps a text in the model's file, as an attribute of this name.
  void keep(const std::string& name, std::string text) { texts_[name] = std::move(text); }

  /// The module's output for these inputs, which lie where it does, with its graph, in whatever mode it is.
  torch::Tensor forward(const torch::Tensor& inputs) const { return forward_(inputs); }
  /// The loss of the batch; g becomes its gradient. One fill of the gradient block, one forward, one backward pass.
  double loss_and_gradient(const Batch& batch);
  /// Calls `ready` during `loss_and_gradient` as soon as a segment's gradient is complete, last layer first. LibTorch
  /// calls it from a thread of its own where passes run on a GPU; `loss_and_gradient` waits for that thread.
  void on_gradient(const std::function<void(SegmentId)>& ready);
  /// Forward pass without gradients, in whatever mode (training, evaluation) the module is.
  Score score(const Batch& batch) const;

  /// Writes the module, as of x in the replica, as `torch::load(module, file)` reads it, or in its own format: a
  /// whole file or none.
  /// `run_id`: kept in the file, if there is one. Throws DataError if the file cannot be written.
  void save(const std::filesystem::path& file, const std::string& run_id = "") const;

  /// Reads what `save` has written for a module of the same kind. Call it before `trainable` and `on_gradient`. Throws
  /// DataError if the file is none, or of another model.
  void load(const std::filesystem::path& file);
  /// Parameters and buffers by their names in the module, in the form that Python's torch.load reads as a dictionary: a
  /// whole file or none. Throws DataError if it cannot be written.
  void save_state_dict(const std::filesystem::path& file) const;
  /// x and all other state of the module.
  void state(Archive& archive);

 private:
  using Forward = std::function<torch::Tensor(const torch::Tensor&)>;
  template <class Module>
  static Forward forward_of(const std::shared_ptr<Module>& module) {
    return [m = module.get()](const torch::Tensor& inputs) { return m->forward(inputs); };
  }
  Model(std::shared_ptr<torch::nn::Module> module, Forward forward, std::optional<Objective> objective);
  void bind(const std::shared_ptr<Device>& device);
  void judge_writing(const Writing& writing, const Batch& batch, std::span<double> sums) const;
  Batch there(const Batch& batch) const { return {batch.inputs.to(where_), batch.targets.to(where_)}; }

  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  std::map<std::string, std::string> texts_;  // that go into its file
  bool own_objective_;
  Objective objective_;
  std::shared_ptr<Parameters> replica_;
  torch::Device where_{torch::kCPU};  // the replica's memory, to LibTorch
  bool with_buffers_ = false;
  torch::Tensor gradient_block_;
  std::vector<torch::Tensor> trainable_, other_state_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // hold the hooks of on_gradient
};

}  // namespace hearsay

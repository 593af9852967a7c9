#pragma once
// LibTorch's optimizers behind our interface, over any tensors of a model. Private to the files of optimizers.
// clip_norm: pascanu2013difficulty, Algorithm 1, over all of these tensors.
#include <torch/torch.h>

#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/replica/parameters.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/model/optimizer_keys.hpp"
#include "runtime/training/model/tensor_state.hpp"

namespace hearsay {

inline std::size_t bytes_of(const std::vector<torch::Tensor>& tensors) {
  std::size_t sum = 0;
  for (const torch::Tensor& tensor : tensors) sum += tensor.nbytes();
  return sum;
}

/// One group, or matrices and the rest, which is not decayed.
template <class Options>
std::vector<torch::optim::OptimizerParamGroup> groups_of(const std::vector<torch::Tensor>& parameters,
                                                         const Options& options, bool decay_matrices_only) {
  std::vector<torch::Tensor> decayed, spared;
  for (const torch::Tensor& parameter : parameters)
    (decay_matrices_only && parameter.dim() < 2 ? spared : decayed).push_back(parameter);
  Options without(options);
  without.weight_decay(0.0);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  if (!decayed.empty()) groups.emplace_back(decayed, std::make_unique<Options>(options));
  if (!spared.empty()) groups.emplace_back(spared, std::make_unique<Options>(without));
  return groups;
}

// What LibTorch's optimizers remember of a parameter. A tensor that is not there yet has no values.
inline void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::SGDParamState& state) {
  optional_tensor_state(archive, "momentum", like, [&]() -> torch::Tensor& { return state.momentum_buffer(); });
}

inline void count_state(Archive& archive, std::int64_t& steps) {
  archive.value("steps", steps);
  if (steps < 0) archive.refuse("steps", "are " + std::to_string(steps));
}

template <class AdamState>
void moments_state(Archive& archive, const torch::Tensor& like, AdamState& state) {
  std::int64_t steps = state.step();
  count_state(archive, steps);
  state.step(steps);
  optional_tensor_state(archive, "first moment", like, [&]() -> torch::Tensor& { return state.exp_avg(); });
  optional_tensor_state(archive, "second moment", like, [&]() -> torch::Tensor& { return state.exp_avg_sq(); });
  optional_tensor_state(archive, "largest second moment", like,
                        [&]() -> torch::Tensor& { return state.max_exp_avg_sq(); });
}
inline void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdamParamState& state) {
  moments_state(archive, like, state);
}
inline void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdamWParamState& state) {
  moments_state(archive, like, state);
}
inline void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdagradParamState& state) {
  std::int64_t steps = state.step();
  count_state(archive, steps);
  state.step(steps);
  optional_tensor_state(archive, "sum of squares", like, [&]() -> torch::Tensor& { return state.sum(); });
}

template <class TorchOptimizer>
struct StateOf;
template <>
struct StateOf<torch::optim::SGD> {
  using Type = torch::optim::SGDParamState;
};
template <>
struct StateOf<torch::optim::Adam> {
  using Type = torch::optim::AdamParamState;
};
template <>
struct StateOf<torch::optim::AdamW> {
  using Type = torch::optim::AdamWParamState;
};
template <>
struct StateOf<torch::optim::Adagrad> {
  using Type = torch::optim::AdagradParamState;
};

/// LibTorch 1 names a parameter by its address as text, LibTorch 2 by its address.
template <class States>
typename States::key_type key_of(const torch::Tensor& parameter) {
  using Key = typename States::key_type;
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

inline StepResponse response_of(const torch::optim::SGDOptions& sgd) {
  const double dampening = sgd.momentum() > 0.0 ? sgd.dampening() : 0.0;  // of momentum only
  return {.learning_rate = sgd.lr(), .momentum = sgd.momentum(), .dampening = dampening, .nesterov = sgd.nesterov()};
}

inline StepResponse response_of(const torch::optim::AdagradOptions& adagrad) {
  return {.learning_rate = adagrad.lr(), .normalised = StepResponse::Normalised{.epsilon = adagrad.eps()}};
}

template <class Adam>
StepResponse response_of(const Adam& adam) {
  const auto [beta1, beta2] = adam.betas();
  return {.learning_rate = adam.lr(),
          .momentum = beta1,
          .dampening = beta1,
          .normalised = StepResponse::Normalised{.memory = beta2, .epsilon = adam.eps()}};
}

/// Steps of `parameters`, which lie in `replica`.
template <class TorchOptimizer>
class LibTorchOptimizer final : public Optimizer {
 public:
  template <class Options>
  LibTorchOptimizer(const Parameters& replica, std::vector<torch::Tensor> parameters, const Options& options,
                    const OptimizerExtras& extras)
      : device_(replica.device),
        parameters_(std::move(parameters)),
        clip_norm_(extras.clip_norm),
        steps_(replica.layout.count(), response_of(options)),
        optimizer_(groups_of(parameters_, options, extras.decay_matrices_only), options) {}
  void step() override {
    const ComputeSlice slice(*device_);
    if (clip_norm_ > 0.0) torch::nn::utils::clip_grad_norm_(parameters_, clip_norm_);
    optimizer_.step();
  }
  void set_learning_rate(double learning_rate) override {
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(learning_rate);
    for (StepResponse& step : steps_) step.learning_rate = learning_rate;
  }
  std::vector<StepResponse> steps() const override { return steps_; }

  void state(Archive& archive) override {
    using State = typename StateOf<TorchOptimizer>::Type;
    const torch::NoGradGuard no_gradient;
    const ComputeSlice slice(*device_);
    auto& states = optimizer_.state();
    for (const torch::Tensor& parameter : parameters_) {
      const auto key = key_of<std::decay_t<decltype(states)>>(parameter);
      auto entry = states.find(key);
      bool there = entry != states.end();
      archive.value("the optimizer knows a parameter", there);
      if (!there) continue;
      if (entry == states.end()) {
        states[key] = std::make_unique<State>();
        entry = states.find(key);
      }
      parameter_state(archive, parameter, static_cast<State&>(*entry->second));
    }
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<torch::Tensor> parameters_;
  double clip_norm_;
  std::vector<StepResponse> steps_;
  TorchOptimizer optimizer_;
};

}  // namespace hearsay

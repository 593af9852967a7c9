// LibTorch's optimizers behind one interface: sgd, adam, adamw, adagrad. Each reads its keys from `optimizer:`.
// clip_norm: pascanu2013difficulty, Algorithm 1, over all parameters.
#include "runtime/training/model/optimizer.hpp"

#include <array>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>

#include "runtime/training/model/model.hpp"
#include "runtime/training/model/tensor_state.hpp"

namespace hearsay {
namespace {

/// Rates become floats, which end at 3.4e38, after a division by as little as 1 - beta^k.
constexpr double largest_rate = 1e30;
constexpr Range rate_above_zero{.min = 0.0, .max = largest_rate, .min_excluded = true};
constexpr Range rate{.min = 0.0, .max = largest_rate};

double read_learning_rate(Config& config, double fallback) {
  return config.real("learning_rate", fallback, rate_above_zero, "eta, the step size");
}

double read_weight_decay(Config& config, double fallback, std::string_view meaning) {
  return config.real("weight_decay", fallback, rate, meaning);
}

constexpr std::string_view l2_penalty = "lambda: g <- g + lambda x";

/// What is ours beside LibTorch's options.
struct Extras {
  double clip_norm = 0.0;  // 0: no clipping
  bool decay_matrices_only = false;
};

Extras read_extras(Config& config) {
  return {
      .clip_norm = config.real("clip_norm", 0.0, rate,
                               "scale the gradient of a step, mixed or corrected as the exchange leaves it, down to "
                               "this Euclidean norm over all parameters; 0: do not"),
      .decay_matrices_only = config.flag("decay_matrices_only", false,
                                         "weight decay spares biases, gains and whatever else has one dimension")};
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
void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::SGDParamState& state) {
  optional_tensor_state(archive, "momentum", like, [&]() -> torch::Tensor& { return state.momentum_buffer(); });
}

void count_state(Archive& archive, std::int64_t& steps) {
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
void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdamParamState& state) {
  moments_state(archive, like, state);
}
void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdamWParamState& state) {
  moments_state(archive, like, state);
}
void parameter_state(Archive& archive, const torch::Tensor& like, torch::optim::AdagradParamState& state) {
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

template <class TorchOptimizer>
class LibTorchOptimizer final : public Optimizer {
 public:
  template <class Options>
  LibTorchOptimizer(const Model& model, const Options& options, const Extras& extras)
      : device_(model.replica().device),
        parameters_(model.trainable()),
        clip_norm_(extras.clip_norm),
        optimizer_(groups_of(parameters_, options, extras.decay_matrices_only), options) {}
  void step() override {
    const ComputeTurn turn(*device_);
    if (clip_norm_ > 0.0) torch::nn::utils::clip_grad_norm_(parameters_, clip_norm_);
    optimizer_.step();
  }
  void set_learning_rate(double learning_rate) override {
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(learning_rate);
  }

  void state(Archive& archive) override {
    using State = typename StateOf<TorchOptimizer>::Type;
    const torch::NoGradGuard no_gradient;
    const ComputeTurn turn(*device_);
    auto& states = optimizer_.state();
    for (const torch::Tensor& parameter : parameters_) {
      const auto key = key_of<std::decay_t<decltype(states)>>(parameter);
      auto place = states.find(key);
      bool there = place != states.end();
      archive.value("the optimizer knows a parameter", there);
      if (!there) continue;
      if (place == states.end()) {
        states[key] = std::make_unique<State>();
        place = states.find(key);
      }
      parameter_state(archive, parameter, static_cast<State&>(*place->second));
    }
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<torch::Tensor> parameters_;
  double clip_norm_;
  TorchOptimizer optimizer_;
};

StepResponse response_of(const torch::optim::SGDOptions& sgd) {
  const double dampening = sgd.momentum() > 0.0 ? sgd.dampening() : 0.0;  // of momentum only
  return {.learning_rate = sgd.lr(), .momentum = sgd.momentum(), .dampening = dampening};
}

StepResponse response_of(const torch::optim::AdagradOptions& adagrad) {
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

template <class TorchOptimizer, class Options>
class LibTorchPlan final : public OptimizerPlan {
 public:
  LibTorchPlan(Options options, int blocks, Extras extras)
      : options_(std::move(options)), blocks_(blocks), extras_(extras) {}
  double learning_rate() const override { return options_.lr(); }
  StepResponse response() const override { return response_of(options_); }
  int blocks() const override { return blocks_; }
  std::unique_ptr<Optimizer> build(const Model& model) const override {
    return std::make_unique<LibTorchOptimizer<TorchOptimizer>>(model, options_, extras_);
  }

 private:
  Options options_;
  int blocks_;
  Extras extras_;
};

std::unique_ptr<OptimizerPlan> make_sgd(Config& config) {
  torch::optim::SGDOptions options(read_learning_rate(config, 0.05));
  options.momentum(config.real("momentum", 0.0, Range::fraction_below_one(), "mu: v <- mu v + (1 - dampening) g"));
  options.dampening(config.real("dampening", 0.0, Range::fraction_below_one(), "what momentum takes off the gradient"));
  options.weight_decay(read_weight_decay(config, 0.0, l2_penalty));
  options.nesterov(config.flag("nesterov", false, "look ahead: the step is g + mu v"));
  config.require(!options.nesterov() || (options.momentum() > 0.0 && options.dampening() == 0.0), "nesterov",
                 "needs momentum > 0 and dampening 0");
  return std::make_unique<LibTorchPlan<torch::optim::SGD, torch::optim::SGDOptions>>(
      options, options.momentum() > 0.0 ? 1 : 0, read_extras(config));
}

template <class TorchOptimizer, class Options>
std::unique_ptr<OptimizerPlan> make_adam(Config& config, double weight_decay, std::string_view weight_decay_meaning) {
  Options options(read_learning_rate(config, 1e-3));
  const double beta1 = config.real("beta1", 0.9, Range::fraction_below_one(), "decay of the first moment");
  const double beta2 = config.real("beta2", 0.999, Range::fraction_below_one(), "decay of the second moment");
  options.betas(std::make_tuple(beta1, beta2));
  options.eps(config.real("epsilon", 1e-8, rate_above_zero, "added to the root of the second moment"));
  options.weight_decay(read_weight_decay(config, weight_decay, weight_decay_meaning));
  options.amsgrad(config.flag("amsgrad", false, "use the largest second moment so far"));
  return std::make_unique<LibTorchPlan<TorchOptimizer, Options>>(options, options.amsgrad() ? 3 : 2,
                                                                 read_extras(config));
}

std::unique_ptr<OptimizerPlan> make_adagrad(Config& config) {
  torch::optim::AdagradOptions options(read_learning_rate(config, 0.01));
  options.lr_decay(config.real("learning_rate_decay", 0.0, rate, "eta_k = eta / (1 + k decay)"));
  options.weight_decay(read_weight_decay(config, 0.0, l2_penalty));
  options.initial_accumulator_value(
      config.real("initial_accumulator", 0.0, rate, "what the sums of squares start with"));
  options.eps(config.real("epsilon", 1e-10, rate_above_zero, "added to the root of the sum of squares"));
  return std::make_unique<LibTorchPlan<torch::optim::Adagrad, torch::optim::AdagradOptions>>(options, 1,
                                                                                             read_extras(config));
}

}  // namespace

std::span<const OptimizerEntry> optimizers() {
  static const std::array entries{
      OptimizerEntry{.name = "sgd",
                     .summary = "stochastic gradient descent, with momentum, Nesterov's look-ahead and weight decay",
                     .equation = "v <- mu v + (1 - dampening)(g + lambda x); x <- x - eta v",
                     .cost = "2 memory passes over x and g; with momentum one block more",
                     .citation = "robbins1951stochastic; sutskever2013importance",
                     .make = make_sgd},
      OptimizerEntry{.name = "adam",
                     .summary = "steps scaled by running moments of the gradient",
                     .equation = "m <- b1 m + (1-b1) g; v <- b2 v + (1-b2) g^2; x <- x - eta m^ / (sqrt(v^) + eps)",
                     .cost = "two blocks more",
                     .citation = "kingma2015adam, Algorithm 1",
                     .make =
                         [](Config& config) {
                           return make_adam<torch::optim::Adam, torch::optim::AdamOptions>(config, 0.0, l2_penalty);
                         }},
      OptimizerEntry{.name = "adamw",
                     .summary = "Adam with weight decay outside of the moments",
                     .equation = "x <- (1 - eta lambda) x, then as adam",
                     .cost = "two blocks more",
                     .citation = "loshchilov2019adamw, Algorithm 2",
                     .make =
                         [](Config& config) {
                           return make_adam<torch::optim::AdamW, torch::optim::AdamWOptions>(
                               config, 0.01, "lambda: x <- (1 - eta lambda) x");
                         }},
      OptimizerEntry{.name = "adagrad",
                     .summary = "steps scaled by the sum of all squared gradients",
                     .equation = "s <- s + g^2; x <- x - eta g / (sqrt(s) + eps)",
                     .cost = "one block more",
                     .citation = "duchi2011adagrad, Figure 1",
                     .make = make_adagrad}};
  return entries;
}

}  // namespace hearsay

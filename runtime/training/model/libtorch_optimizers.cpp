// LibTorch's optimizers: sgd, adam, adamw, adagrad. Each reads its keys from `optimizer:`.
#include <string>

#include "runtime/training/model/libtorch_optimizer.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/model/optimizer_keys.hpp"

namespace hearsay {
namespace {

template <class TorchOptimizer, class Options>
class LibTorchPlan final : public OptimizerPlan {
 public:
  LibTorchPlan(Options options, int blocks, OptimizerExtras extras)
      : options_(std::move(options)), blocks_(blocks), extras_(extras) {}
  double learning_rate() const override { return options_.lr(); }
  std::size_t kept_bytes(Model& model) const override {
    return static_cast<std::size_t>(blocks_) * bytes_of(model.trainable());
  }
  std::unique_ptr<Optimizer> build(Model& model) const override {
    return std::make_unique<LibTorchOptimizer<TorchOptimizer>>(model.replica(), model.trainable(), options_, extras_);
  }

 private:
  Options options_;
  int blocks_;
  OptimizerExtras extras_;
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
  const auto options = read_adam<Options>(config, 1e-3, weight_decay, weight_decay_meaning);
  return std::make_unique<LibTorchPlan<TorchOptimizer, Options>>(options, blocks_of_adam(options), read_extras(config));
}

std::unique_ptr<OptimizerPlan> make_adagrad(Config& config) {
  torch::optim::AdagradOptions options(read_learning_rate(config, 0.01));
  options.lr_decay(config.real("learning_rate_decay", 0.0, rate_from_zero, "eta_k = eta / (1 + k decay)"));
  options.weight_decay(read_weight_decay(config, 0.0, l2_penalty));
  options.initial_accumulator_value(
      config.real("initial_accumulator", 0.0, rate_from_zero, "what the sums of squares start with"));
  options.eps(config.real("epsilon", 1e-10, rate_above_zero, "added to the root of the sum of squares"));
  return std::make_unique<LibTorchPlan<torch::optim::Adagrad, torch::optim::AdagradOptions>>(options, 1,
                                                                                             read_extras(config));
}

}  // namespace

OptimizerEntry sgd_optimizer() {
  return {.name = "sgd",
          .summary = "stochastic gradient descent, with momentum, Nesterov's look-ahead and weight decay",
          .equation = "v <- mu v + (1 - dampening)(g + lambda x); x <- x - eta v",
          .cost = "2 memory passes over x and g; with momentum one block more",
          .citation = "robbins1951stochastic; sutskever2013importance",
          .make = make_sgd};
}

OptimizerEntry adam_optimizer() {
  return {.name = "adam",
          .summary = "steps scaled by running moments of the gradient",
          .equation = "m <- b1 m + (1-b1) g; v <- b2 v + (1-b2) g^2; x <- x - eta m^ / (sqrt(v^) + eps)",
          .cost = "two blocks more",
          .citation = "kingma2015adam, Algorithm 1",
          .make = [](Config& config) {
            return make_adam<torch::optim::Adam, torch::optim::AdamOptions>(config, 0.0, l2_penalty);
          }};
}

OptimizerEntry adamw_optimizer() {
  return {.name = "adamw",
          .summary = "Adam with weight decay outside of the moments",
          .equation = "x <- (1 - eta lambda) x, then as adam",
          .cost = "two blocks more",
          .citation = "loshchilov2019adamw, Algorithm 2",
          .make = [](Config& config) {
            return make_adam<torch::optim::AdamW, torch::optim::AdamWOptions>(config, 0.01, decoupled_decay);
          }};
}

OptimizerEntry adagrad_optimizer() {
  return {.name = "adagrad",
          .summary = "steps scaled by the sum of all squared gradients",
          .equation = "s <- s + g^2; x <- x - eta g / (sqrt(s) + eps)",
          .cost = "one block more",
          .citation = "duchi2011adagrad, Figure 1",
          .make = make_adagrad};
}

}  // namespace hearsay

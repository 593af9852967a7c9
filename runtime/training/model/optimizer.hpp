#pragma once
// Who turns a gradient into a step: LibTorch's optimizers, chosen by `optimizer.name`. No LibTorch in this header.
#include <memory>
#include <span>

#include "base/config/table.hpp"
#include "runtime/exchange/exchange.hpp"

namespace hearsay {

class Model;

/// x ← x − step(g), over the trainable parameters of one model. Its state (momentum, moments) stays on its rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step() = 0;
  virtual void set_learning_rate(double learning_rate) = 0;
  /// Moments and counts (base/state/archive.hpp).
  virtual void state(Archive& archive) = 0;
};

/// A configured optimizer before there is a model.
class OptimizerPlan {
 public:
  virtual ~OptimizerPlan() = default;
  virtual double learning_rate() const = 0;
  /// What a gradient does to x at that learning rate.
  virtual StepResponse response() const = 0;
  /// Blocks of n floats that it keeps beside x and g: momentum, moments.
  virtual int blocks() const = 0;
  /// `model` must outlive the optimizer.
  virtual std::unique_ptr<Optimizer> build(const Model& model) const = 0;
};

/// The Config is the section `optimizer:`.
using OptimizerEntry = Entry<OptimizerPlan>;
std::span<const OptimizerEntry> optimizers();

}  // namespace hearsay

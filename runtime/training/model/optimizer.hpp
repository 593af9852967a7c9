#pragma once
// Who turns a gradient into a step: optimizers, chosen by `optimizer.name`. No LibTorch in this header.
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/config/table.hpp"
#include "runtime/exchange/exchange.hpp"

namespace hearsay {

class Model;

/// x ← x − step(g), over the trainable parameters of one model. Its state (momentum, moments) stays on its rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step() = 0;
  /// From the next step on; before the first call it is the plan's.
  virtual void set_learning_rate(double learning_rate) = 0;
  /// (segments) what a gradient does to x at that rate.
  virtual std::vector<StepResponse> steps() const = 0;
  /// Moments and counts (base/state/archive.hpp).
  virtual void state(Archive& archive) = 0;
};

/// A configured optimizer before there is a model.
class OptimizerPlan {
 public:
  virtual ~OptimizerPlan() = default;
  virtual double learning_rate() const = 0;
  /// Whether a value moves by its own gradients alone.
  virtual bool is_by_value() const { return true; }
  /// Bytes that it keeps beside x and g, momentum and moments, and those that a step works in.
  virtual std::size_t kept_bytes(Model& model) const = 0;
  /// `model` must outlive the optimizer.
  virtual std::unique_ptr<Optimizer> build(Model& model) const = 0;
};

/// The Config is the section `optimizer:`.
using OptimizerEntry = Entry<OptimizerPlan>;
std::span<const OptimizerEntry> optimizers();

}  // namespace hearsay

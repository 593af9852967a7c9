#pragma once
// How far a gradient moves a segment under an optimizer that divides gradients by the root of their squares.
//   gain_s = η / (rms_s + ε),  rms_s² = the running mean, or the sum, of ‖g_s‖² / n_s as the optimizer keeps it
// One number a segment, where the optimizer has one a value: values whose own root is smaller move further than it
// says. They do not run away, since a gradient that swings enlarges its root. Cost: a pass over g an iteration.
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

class RunningGain {
 public:
  /// `step.normalised` must be there.
  RunningGain(const StepResponse& step, const Layout& layout, Device& device);
  /// What the optimizer is given.
  void gradient(std::span<const float> g);
  /// (segments), of 8 significant bits; 0 before the first gradient, and where all of them were 0.
  std::span<const float> gains() const { return gains_; }

  void state(Archive& archive) {
    archive.values("mean squares of gradients", std::span(squares_));
    archive.value("weight of gradients", weight_);
    archive.values("gains", std::span(gains_));
  }

 private:
  double learning_rate_;
  StepResponse::Normalised by_;
  const Layout& layout_;
  Device::Norms compute_norms_;
  std::vector<double> norms_, squares_;  // (segments)
  double weight_ = 0.0;                  // of all gradients so far in `squares_`
  std::vector<float> gains_;
};

/// The nearest float of 8 significant bits: one whose lower half is 0.
float of_8_bits(double value);

}  // namespace hearsay

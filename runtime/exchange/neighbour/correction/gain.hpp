#pragma once
// How far a gradient moves a segment: the most that the steps so far say.
//   gain_s = the highest η (1 − dampening) / (1 − μ) so far
//   gain_s = that / (rms_s + ε)    under an optimizer that divides gradients by the root of their squares,
//            rms_s² = the running mean, or the sum, of ‖g_s‖² / n_s as the optimizer keeps it
// The highest: a rate that falls leaves v as it is, and what is still learnt is then learnt slower, never too fast.
// By the rate of the moment a schedule that falls to nearly 0 and rises again would turn the rounding of the last
// moves into a push of many times the gradient.
// A root is one number a segment, where the optimizer has one a value: values whose own root is smaller move further
// than it says. They do not run away, since a gradient that swings enlarges its root. Cost: where a segment is
// normalised, a pass over g an iteration.
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

class RunningGain {
 public:
  /// `steps`: as ExchangeContext has them, read again in every call.
  RunningGain(std::span<const StepResponse> steps, const Layout& layout, Device& device);
  /// What the optimizer is given.
  void gradient(std::span<const float> g);
  /// (segments), of 8 significant bits; 0 while η is not known and, where gradients are normalised, before the first
  /// gradient and where all of them were 0.
  std::span<const float> gains();

  void state(Archive& archive) {
    archive.values("mean squares of gradients", std::span(squares_));
    archive.values("weights of gradients", std::span(weights_));
    archive.values("highest gains", std::span(highest_));
  }

 private:
  std::span<const StepResponse> steps_;
  const Layout& layout_;
  Device::Norms compute_norms_;
  std::vector<double> norms_, squares_;  // (segments)
  std::vector<double> weights_;          // (segments) of all gradients so far in `squares_`
  std::vector<double> highest_;          // (segments)
  std::vector<float> gains_;
};

/// The nearest float of 8 significant bits: one whose lower half is 0.
float of_8_bits(double value);

}  // namespace hearsay

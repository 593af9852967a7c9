#pragma once
// Δ, the one step that value events of a rank are counted in.
//   Δ = h · sqrt( Σ_s gain_s² q_s / n ),   q_s ← q_s + (‖g_s‖² − q_s) / min(gradients so far, 32)
// gain_s is how far a gradient moves segment s now (StepResponse::gain): η / (1 − μ) under momentum. Where the
// optimizer divides gradients by their root mean square, n_s takes the place of q_s. So Δ is h typical steps of a
// value, over all values of the model: as thresholds of EventGraD follow the slope, Δ follows the step.
// g is the plain gradient. Where v of a drift correction were in it, v's noise would feed back through Δ; and were Δ to
// follow the bytes, it would grow when ranks move apart: then the error is relative again, and runs diverge.
// Own rule. Cost: a read pass over g an iteration; a number a segment.
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

class ValueStep {
 public:
  /// `steps`: as ExchangeContext has them, read again in every call.
  ValueStep(const StepRule& rule, std::span<const StepResponse> steps, const Layout& layout, Device& device);
  /// What the optimizer would be given without a correction.
  void gradient(std::span<const float> g);
  /// Δ as it is sent (sent_step); 0 before the first gradient, while no rate is known, and where all gradients were 0.
  float length() const;
  /// θΔ; +∞ while Δ is not known.
  double dead_zone() const;
  void state(Archive& archive);

 private:
  StepRule rule_;
  std::span<const StepResponse> steps_;
  const Layout& layout_;
  Device::Norms compute_norms_;
  std::vector<double> norms_, squares_;  // (segments); squares_: q
  Iteration seen_ = 0;                   // gradients
};

}  // namespace hearsay

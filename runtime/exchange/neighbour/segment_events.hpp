#pragma once
// Which segments of x are events: what a trigger says of how far each has moved since it was last sent.
//   norm:      | ‖x_s‖ − ‖x_s at its last event‖ |
//   change:    ‖x_s − x̂_s‖,  largest: max |x_s − x̂_s|;  x̂ is what neighbours hold of x
// Where single values are events, it keeps the step that they are counted in, too (value_step.hpp).
// Cost: a read pass for the norms; one more a copy where changes are the measure.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/exchange/neighbour/link/link.hpp"
#include "runtime/exchange/neighbour/value_step.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {

class SegmentEvents {
 public:
  /// x is the initial model, which all neighbours know. `rule`: of the codec that counts values in steps, if it does.
  SegmentEvents(const ExchangeContext& context, const TriggerPlan& trigger, const std::optional<StepRule>& rule);
  /// Decides about x_k, and tells the link the step of values.
  void decide(Iteration k, NeighbourLink& link);
  /// In place of `decide`: none is an event.
  void rest() { std::ranges::fill(fired_, std::uint8_t{0}); }
  /// What the optimizer would be given without a correction.
  void gradient(std::span<const float> g) {
    if (step_) step_->gradient(g);
  }
  /// (segments) 1 where the last `decide` has found an event.
  std::span<const std::uint8_t> fired() const { return fired_; }
  std::span<const double> thresholds() const { return trigger_.thresholds(); }
  std::span<const double> norms() const { return norms_; }
  bool local_steps_between_events() const { return trigger_.local_steps_between_events(); }
  void state(Archive& archive);

 private:
  std::vector<double> initial_norms();
  void measure_changes(std::span<const FloatBlock> held);

  const ExchangeContext& context_;
  Device::Norms compute_norms_;
  Device::ChangeNorms compute_changes_;  // none unless changes are the measure
  std::vector<double> norms_, changes_;
  TriggerEngine trigger_;
  std::vector<std::uint8_t> fired_;
  std::optional<ValueStep> step_;  // where single values are events
};

}  // namespace hearsay

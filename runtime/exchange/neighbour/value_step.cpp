#include "runtime/exchange/neighbour/value_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace hearsay {

ValueStep::ValueStep(const StepRule& rule, std::span<const StepResponse> steps, const Layout& layout, Device& device)
    : rule_(rule),
      steps_(steps),
      layout_(layout),
      compute_norms_(device.norms(layout)),
      norms_(layout.count()),
      squares_(layout.count()) {}

void ValueStep::gradient(std::span<const float> g) {
  if (rule_.fixed) return;
  constexpr Iteration memory = 32;
  compute_norms_(g, norms_);
  seen_ = std::min(seen_ + 1, memory);
  for (SegmentId s = 0; s < norms_.size(); ++s)
    squares_[s] += (norms_[s] * norms_[s] - squares_[s]) / static_cast<double>(seen_);
}

float ValueStep::length() const {
  if (rule_.fixed) return sent_step(*rule_.fixed);
  if (seen_ == 0) return 0.0F;
  double sum = 0.0;
  for (SegmentId s = 0; s < squares_.size(); ++s) {
    const double gain = steps_[s].gain();
    sum += gain * gain * (steps_[s].normalised ? static_cast<double>(layout_[s].length) : squares_[s]);
  }
  return sent_step(rule_.horizon * std::sqrt(sum / static_cast<double>(layout_.size())));
}

double ValueStep::dead_zone() const {
  const float step = length();
  return step > 0.0F ? double{hearsay::dead_zone(rule_, step)} : std::numeric_limits<double>::infinity();
}

void ValueStep::state(Archive& archive) {
  archive.values("mean squares for value events", std::span(squares_));
  archive.value("gradients for value events", seen_);
  if (seen_ < 0) archive.refuse("gradients for value events", "are " + std::to_string(seen_));
}

}  // namespace hearsay

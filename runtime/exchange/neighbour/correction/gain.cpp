#include "runtime/exchange/neighbour/correction/gain.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hearsay {

RunningGain::RunningGain(std::span<const StepResponse> steps, const Layout& layout, Device& device)
    : steps_(steps),
      layout_(layout),
      compute_norms_(device.norms(layout)),
      norms_(layout_.count()),
      squares_(layout_.count()),
      weights_(layout_.count()),
      highest_(layout_.count()),
      gains_(layout_.count()) {}

void RunningGain::gradient(std::span<const float> g) {
  if (std::ranges::none_of(steps_, [](const StepResponse& step) { return step.normalised.has_value(); })) return;
  compute_norms_(g, norms_);
  for (SegmentId s = 0; s < layout_.count(); ++s) {
    if (!steps_[s].normalised) continue;
    const double memory = steps_[s].normalised->memory;
    const bool whole = memory == 1.0 || steps_[s].normalised->from_zero;
    const double of_new = memory == 1.0 ? 1.0 : 1.0 - memory;
    weights_[s] = whole ? 1.0 : memory * weights_[s] + of_new;
    squares_[s] = memory * squares_[s] + of_new * norms_[s] * norms_[s] / static_cast<double>(layout_[s].length);
  }
}

std::span<const float> RunningGain::gains() {
  for (SegmentId s = 0; s < layout_.count(); ++s) {
    highest_[s] = std::max(highest_[s], steps_[s].gain());
    double divisor = 1.0;
    if (steps_[s].normalised) {
      const double root = weights_[s] > 0.0 ? std::sqrt(squares_[s] / weights_[s]) : 0.0;
      divisor = root > 0.0 ? root + steps_[s].normalised->epsilon : 0.0;
    }
    gains_[s] = divisor > 0.0 ? of_8_bits(highest_[s] / divisor) : 0.0F;
  }
  return gains_;
}

float of_8_bits(double value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(static_cast<float>(value)) + 0x8000U) & 0xffff0000U);
}

}  // namespace hearsay

#include "runtime/exchange/neighbour/correction/gain.hpp"

#include <bit>
#include <cmath>

namespace hearsay {

RunningGain::RunningGain(const StepResponse& step, const Layout& layout, Device& device)
    : learning_rate_(step.learning_rate),
      by_(step.normalised.value()),
      layout_(layout),
      compute_norms_(device.norms(layout)),
      norms_(layout_.count()),
      squares_(layout_.count()),
      gains_(layout_.count()) {}

void RunningGain::gradient(std::span<const float> g) {
  compute_norms_(g, norms_);
  const bool sum = by_.memory == 1.0;
  const double of_new = sum ? 1.0 : 1.0 - by_.memory;
  weight_ = sum ? 1.0 : by_.memory * weight_ + of_new;
  for (SegmentId s = 0; s < layout_.count(); ++s) {
    squares_[s] = by_.memory * squares_[s] + of_new * norms_[s] * norms_[s] / static_cast<double>(layout_[s].length);
    const double root = std::sqrt(squares_[s] / weight_);
    gains_[s] = root > 0.0 ? of_8_bits(learning_rate_ / (root + by_.epsilon)) : 0.0F;
  }
}

float of_8_bits(double value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(static_cast<float>(value)) + 0x8000U) & 0xffff0000U);
}

}  // namespace hearsay

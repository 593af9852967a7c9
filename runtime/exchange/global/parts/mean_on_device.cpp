#include "runtime/exchange/global/parts/mean_on_device.hpp"

#include <cmath>
#include <utility>

#include "runtime/collectives/ring.hpp"
#include "runtime/replica/finite.hpp"

namespace hearsay {

MeanOnDevice::MeanOnDevice(const ExchangeContext& context, std::size_t most)
    : context_(context), lane_(context.device().lane(part_of(most, context.peers.size(), 0).length)) {}

std::span<float> MeanOnDevice::begin(std::size_t offset, std::size_t length) {
  const auto values = context_.replica.gradients.span().subspan(offset, length);
  if (!finite(offset, values))
    require_finite_gradients(context_.replica.layout, offset, fetched(context_.device(), values));
  lane_->follow();
  return values;
}

void MeanOnDevice::add(std::span<float> values) { ring_all_reduce(Group(context_.peers), values, *lane_); }

void MeanOnDevice::finish() {
  const auto g = context_.replica.gradients.span();
  context_.device().divide(static_cast<float>(context_.peers.size()), g);
  if (!finite(0, g)) require_finite_sum(context_.replica.layout, 0, fetched(context_.device(), g));
}

// Squares of floats, and their sums, fit a double: a norm is a number if and only if all values are.
bool MeanOnDevice::finite(std::size_t offset, std::span<const float> values) {
  auto& norm_of = norms_[{offset, values.size()}];
  if (!norm_of) {
    Layout run;
    run.append("values", {static_cast<std::int64_t>(values.size())});
    norm_of = context_.device().norms(run);
  }
  double norm = 0.0;
  norm_of(values, {&norm, 1});
  return std::isfinite(norm);
}

}  // namespace hearsay

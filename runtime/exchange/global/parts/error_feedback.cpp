#include "runtime/exchange/global/parts/error_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/replica/block_state.hpp"

namespace hearsay {

FeedbackOptions read_feedback(Config& exchange) {
  Config feedback = exchange.section("feedback");
  FeedbackOptions options;
  options.momentum = feedback.real("momentum", 0.0, Range::fraction_below_one(),
                                   "momentum correction: the residual collects u <- m u + g; 0: off. Use it instead of "
                                   "the optimizer's momentum");
  options.nesterov = feedback.flag("nesterov", false, "look ahead: u <- m (u + g), and u + g is collected");
  options.factor_masking =
      feedback.flag("factor_masking", true, "u <- 0 where the contribution was applied (with momentum correction)");
  options.clip_norm = feedback.real("clip_norm", 0.0, Range::at_least(0.0),
                                    "local clipping: gradients longer than this / sqrt(ranks) are shortened; 0: off");
  feedback.require(!options.nesterov || options.momentum > 0.0, "nesterov", "needs feedback.momentum > 0");
  return options;
}

namespace {

void leave_out_zeros(SparseVector& v) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v.values[i] == 0.0F) continue;
    v.indices[kept] = v.indices[i];
    v.values[kept++] = v.values[i];
  }
  v.resize(kept);
}

}  // namespace

ErrorFeedback::ErrorFeedback(const FeedbackOptions& options, std::size_t n, int ranks, std::shared_ptr<Device> device)
    : options_(options),
      clip_(options.clip_norm / std::sqrt(static_cast<double>(ranks))),
      device_(std::move(device)),
      residual_(device_->block(n)),
      momentum_(device_->block(options.momentum > 0.0 ? n : 0)) {}

float ErrorFeedback::clipping(std::span<const float> g) const {
  if (clip_ == 0.0) return 1.0F;
  Layout whole;
  whole.append("the gradient", {static_cast<std::int64_t>(g.size())});
  double norm = 0.0;
  device_->norms(whole)(g, {&norm, 1});
  return static_cast<float>(std::min(1.0, clip_ / std::max(norm, 1e-30)));
}

SparseVector ErrorFeedback::contribute(std::span<float> g, SumSelection& selection, double density) {
  if (options_.decay < 1.0)
    for (float& r : residual_.span()) r *= static_cast<float>(options_.decay);
  float scale = clipping(g);
  if (options_.momentum > 0.0) {
    device_->add_momentum(static_cast<float>(options_.momentum), options_.nesterov, scale, g, momentum_.span());
    scale = 1.0F;
  }
  SparseVector taken;
  selection.take(residual_.span(), g, scale, density, taken.indices, taken.values);
  leave_out_zeros(taken);
  return taken;
}

void ErrorFeedback::accumulate(std::span<const float> g, std::size_t offset, float scale) {
  const auto r = residual_.span().subspan(offset, g.size());
  if (options_.momentum == 0.0) {
    for (std::size_t i = 0; i < g.size(); ++i) r[i] += scale * g[i];
    return;
  }
  const auto m = static_cast<float>(options_.momentum);
  const auto u = momentum_.span().subspan(offset, g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float step = scale * g[i];
    u[i] = options_.nesterov ? m * (u[i] + step) : m * u[i] + step;
    r[i] += options_.nesterov ? u[i] + step : u[i];
  }
}

SparseVector ErrorFeedback::take(std::span<const std::uint32_t> positions, std::size_t offset) {
  SparseVector taken;
  taken.indices.reserve(positions.size());
  taken.values.reserve(positions.size());
  const auto r = residual_.span();
  for (const std::uint32_t position : positions) {
    const std::size_t i = offset + position;
    if (r[i] != 0.0F) taken.push_back(static_cast<std::uint32_t>(i), std::exchange(r[i], 0.0F));
  }
  return taken;
}

void ErrorFeedback::give_back(const SparseVector& v) { device_->add_entries(v.indices, v.values, residual_.span()); }

void ErrorFeedback::add_residual(std::span<float> block) const {
  const std::vector<float> r = fetched(*device_, residual_.span());
  for (std::size_t i = 0; i < r.size(); ++i) block[i] += r[i];
}

void ErrorFeedback::take_over(std::span<const float> values, std::size_t offset) {
  const auto part = residual_.span().subspan(offset, values.size());
  std::vector<float> r = fetched(*device_, part);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] += values[i];
  device_->put(std::as_bytes(std::span(r)), part);
}

void ErrorFeedback::state(Archive& archive) {
  block_state(archive, "residual", *device_, residual_.span());
  block_state(archive, "momentum", *device_, momentum_.span());
}

void ErrorFeedback::mask(std::span<const std::uint32_t> positions) {
  if (momentum_.size() == 0 || !options_.factor_masking) return;
  device_->set_entries(positions, std::vector<float>(positions.size()), momentum_.span());
}

}  // namespace hearsay

#include "runtime/exchange/neighbour/correction/limit.hpp"

#include <cmath>

#include "runtime/replica/mixing_passes.hpp"

namespace hearsay {

DriftLimit::DriftLimit(const Layout& layout, Device& device)
    : layout_(layout),
      device_(device),
      compute_norms_(device.norms(layout)),
      g_norms_(layout.count()),
      v_norms_(layout.count()),
      squares_(layout.count()) {}

void DriftLimit::correct(std::span<float> g, std::span<const float> v) {
  constexpr double memory = 0.9, times = 1.25;
  compute_norms_(g, g_norms_);
  compute_norms_(v, v_norms_);
  weight_ = memory * weight_ + (1.0 - memory);
  for (SegmentId s = 0; s < layout_.count(); ++s) {
    squares_[s] = memory * squares_[s] + (1.0 - memory) * g_norms_[s] * g_norms_[s];
    const double most = times * std::sqrt(squares_[s] / weight_);
    // Where there was no gradient yet, there is nothing to compare with.
    const double part = most > 0.0 && v_norms_[s] > most ? most / v_norms_[s] : 1.0;
    const Segment& segment = layout_[s];
    const MixEdge minus_v{
        .weight = -static_cast<float>(part), .theirs = v.subspan(segment.offset, segment.length), .ours = {}};
    device_.mix_row(1.0F, {&minus_v, 1}, g.subspan(segment.offset, segment.length));
  }
}

void DriftLimit::state(Archive& archive) {
  archive.values("mean squares of gradients", std::span(squares_));
  archive.value("weight of gradients", weight_);
}

}  // namespace hearsay

#pragma once
// Mixing rules: how a rank pulls its replica x_i towards what it knows of its neighbours.
#include <memory>
#include <span>

#include "base/config/table.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/mixing_passes.hpp"

namespace hearsay {

class MixingRule {
 public:
  virtual ~MixingRule() = default;
  /// Changes x in place, by passes of the device that all spans lie on. Deterministic: edges in the given order,
  /// elementwise, whatever the device.
  virtual void mix(const Layout& layout, float self_weight, std::span<const MixEdge> edges, std::span<float> x,
                   Device& device) const = 0;
  /// Whether, in lockstep, the mean over ranks stays where it is for any pattern of events.
  virtual bool keeps_mean() const { return false; }
  /// Whether `MixEdge::ours` is read; keeping it costs one block (lockstep) or one block an edge (asynchronous).
  virtual bool needs_own_copy() const { return false; }
};

using MixingEntry = Entry<MixingRule>;
std::span<const MixingEntry> mixing_rules();

}  // namespace hearsay

#pragma once
// How much of what a rank has learnt is taken off its gradient.
//   g_s ← g_s − min(1, b r_s / ‖v_s‖) v_s,  b = 5/4,  r_s² = the running mean of ‖g_s‖² over some ten iterations
// Where a run comes to rest v_s is the rank's own gradient, so it is not longer than the gradients are. One that is
// longer was learnt of a slope that is not there any more. Asynchronously mixing takes it back too late: among sixteen
// ranks of one or two classes of MNIST each, with one rank four times slower, the model had left before.
// Why not b = 1: a run could rest with v_s any multiple of g_s. With b > 1 what is limited is longer than g_s, so the
// run moves on, to where it rests without a limit. With b = 2 the ranks on MNIST diverge.
// What all v add up to stays 0. While a limit holds, the mean moves by a little more or less than the mean gradient.
// Cost: a pass over g and one over v an iteration.
#include <span>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

class DriftLimit {
 public:
  DriftLimit(const Layout& layout, Device& device);
  /// Takes v off g, as far as it may.
  void correct(std::span<float> g, std::span<const float> v);
  void state(Archive& archive);

 private:
  const Layout& layout_;
  Device& device_;
  Device::Norms compute_norms_;
  std::vector<double> g_norms_, v_norms_;  // (segments)
  std::vector<double> squares_;            // (segments) running means of ‖g_s‖², times `weight_`
  double weight_ = 0.0;                    // of all gradients so far
};

}  // namespace hearsay

#pragma once
// What this rank still owes to the sum: the residual r of error feedback, with the options of Deep Gradient
// Compression.
//   plain:                 r ← r + g
//   momentum correction:   u ← m u + g;       r ← r + u         (Nesterov: u ← m (u + g); r ← r + u + g)
//   then                   send T(r);         r ← r − T(r) + what the collective gives back
//   factor masking:        u ← 0 where the contribution was applied
//   decay:                 r ← β r + g
//   local clipping:        g ← g · min(1, c / (√P ‖g‖)) before all of it
// Lin et al., Deep Gradient Compression, ICLR 2018 (lin2018dgc), Algorithm 1 and section 3; error feedback:
// seide2014onebit.
#include <span>

#include "base/state/archive.hpp"
#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/replica/device.hpp"

namespace hearsay {

struct FeedbackOptions {
  double momentum = 0.0;       ///< m, in [0, 1); 0: no momentum correction
  bool nesterov = false;       ///< with momentum > 0
  bool factor_masking = true;  ///< with momentum > 0
  double clip_norm = 0.0;      ///< c; 0: no clipping
  double decay = 1.0;          ///< β of r ← β r + g; below 1 what is owed is forgotten. The processor's only
};
/// Reads `feedback: {momentum, nesterov, factor_masking, clip_norm}`.
FeedbackOptions read_feedback(Config& exchange);

/// Bytes of what error feedback keeps of n values.
inline std::size_t feedback_bytes(const FeedbackOptions& options, std::size_t n) {
  return (options.momentum > 0.0 ? 2 : 1) * n * sizeof(float);
}

/// Residual and momentum of n values, where the device has its memory. What takes or returns positions or spans of the
/// residual as the processor's is for the processor only: `accumulate`, `take`.
class ErrorFeedback {
 public:
  ErrorFeedback(const FeedbackOptions& options, std::size_t n, int ranks, std::shared_ptr<Device> device = processor());

  /// r ← r + g (or u), clipped; then what `selection` keeps of r at this density, in canonical form (zeros left out),
  /// moved out of it. g is no gradient any more. The device's.
  SparseVector contribute(std::span<float> g, SumSelection& selection, double density);

  /// r ← r + g (or u) for values [offset, offset + g.size()). Clipping, which needs the norm of the whole gradient, is
  /// `scale`'s.
  void accumulate(std::span<const float> g, std::size_t offset = 0, float scale = 1.0F);
  /// Whether r ← r + g is all: no momentum.
  bool plain() const { return options_.momentum == 0.0; }
  /// The factor that local clipping asks for: in (0, 1].
  float clipping(std::span<const float> g) const;

  std::span<float> residual() { return residual_.span(); }
  std::span<const float> residual() const { return residual_.span(); }
  /// The values at these positions, in canonical form (zeros left out), moved out of the residual. `offset` is added to
  /// the positions.
  SparseVector take(std::span<const std::uint32_t> positions, std::size_t offset = 0);
  void give_back(const SparseVector& v);
  /// block ← block + r; block is the processor's.
  void add_residual(std::span<float> block) const;
  /// r[offset, …) ← r + values, the processor's.
  void take_over(std::span<const float> values, std::size_t offset = 0);
  void state(Archive& archive);
  /// Factor masking at positions whose contribution was applied; nothing without it.
  void mask(std::span<const std::uint32_t> positions);

 private:
  FeedbackOptions options_;
  double clip_;  // c / √P
  std::shared_ptr<Device> device_;
  FloatBlock residual_, momentum_;
};

}  // namespace hearsay

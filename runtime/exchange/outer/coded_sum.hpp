#pragma once
// The sum over all ranks of outer differences, of which only what is news travels.
//   r_i ← r_i + D_i;  v_i ← what is news of r_i, in integers of Δ;  r_i ← r_i − v_i;  D ← Σ_i v_i
// sparsify/quantisers/sum_step.hpp says what is news; error feedback: seide2014onebit; the gather is topk's. A fragment
// has a message, and a Δ, of its own.
// Cost: topk's; a block of residuals.
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/global/parts/error_feedback.hpp"
#include "sparsify/quantisers/sum_step.hpp"

namespace hearsay {

class CodedSum final : public Residual {
 public:
  /// What happens between `take` and `end_round`: nothing, or local steps, a checkpoint among them.
  enum class Meanwhile { nothing, local_steps };
  /// Context and sparsifier must outlive it; the sparsifier has `news`.
  CodedSum(const ExchangeContext& context, const Sparsifier& sparsifier, Meanwhile meanwhile);

  /// r ← r + d, which begins at `offset` of the block; returns what is news of it, moved out of r: positions in the
  /// block. Charges an event for every segment that has some. Throws DivergenceError, naming the segment.
  SparseVector take(std::span<const float> d, std::size_t offset);
  /// On the communication thread: d ← Σ over ranks of what they have taken of this slice.
  void sum(SparseVector own, std::size_t offset, std::span<float> d);
  /// After every sum, when it has been waited for: what rounding kept back is owed again.
  void settle();
  /// After `settle`: the model has taken the sum in.
  void end_round() { before_.clear(); }

  /// Until its round ends a difference is all in the replicas, and what was owed before it is owed: its rest would
  /// count twice.
  void add_residual(std::span<float> block) const override;
  void take_residual(std::span<const float> sum) override;
  void state(Archive& archive);

 private:
  const ExchangeContext& context_;
  const Codec& codec_;
  SumStep step_;
  Meanwhile meanwhile_;
  ErrorFeedback feedback_;
  SparseVector returned_;
  std::vector<float> before_;      // r of the slice that is under way, before its `take`; where local steps are
  std::size_t before_offset_ = 0;  // made meanwhile
};

}  // namespace hearsay

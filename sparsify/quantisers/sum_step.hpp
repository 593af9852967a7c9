#pragma once
// Δ of a sum over all ranks, and which values of a residual are news to it.
//   news              {i : |r_i| ≥ θΔ}; what is not, and what an integer leaves of a value, stays in r
//   `bits_per_value`  b:  Δ = |r|_(k) / θ, the k-th largest magnitude, k = f n;  f ← f b / (bits a value that went out)
//                     at first f = f₀, of which positions and integers take b bits:  H(f₀) + 1.3 f₀ = b
//                     f ∈ [f₀ / 4, 2 f₀], and no message has more than 2 f₀ n values: the largest go, the others next;
//                     where fewer than k are not 0, the step of `length_for`
//   `step`            Δ itself
//   `horizon`         h:  Δ = h · RMS of what a round adds to r, over the last 32 rounds or so
// Own rule; that one step for all values divides bits best: sullivan1996efficient. H is the entropy of a fraction, in
// bits. f is corrected, and not Δ: bits fall with the first to fifth power of Δ, as the tail of r is, and rise with
// f^0.8 for any tail. So f settles within two rounds, and a
// change of scale changes Δ at once. A step may
// follow the bytes here and not between neighbours, where ranks that move apart would get a coarser one: what a message
// leaves out stays in r, and all ranks add the same sum.
// Cost: a selection of k values and one read more a message; one read with `step`, two with `horizon`. State: 5
// numbers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/state/archive.hpp"
#include "sparsify/search/exact_select.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

class SumStep {
 public:
  explicit SumStep(const StepRule& rule);

  /// Values of a message of n, as a rule and at most: f₀ n and 2 f₀ n, or n where no budget says how many.
  static std::size_t usual_news(const StepRule& rule, std::size_t n);
  static std::size_t most_news(const StepRule& rule, std::size_t n);
  std::size_t usual_news(std::size_t n) const { return usual_news(rule_, n); }
  std::size_t most_news(std::size_t n) const { return most_news(rule_, n); }

  /// `scale` · `values` is about to be added to the residual.
  void adds(std::span<const float> values, float scale = 1.0F);
  /// Chooses Δ for a message of what is owed now, and fills `news` with positions in it, ascending. Throws
  /// DivergenceError (position and value) if a value is not finite.
  void select(std::span<const float> owed, std::vector<std::uint32_t>& news);
  /// Δ of this message, as it is sent; 0: nothing is news.
  float length() const { return step_; }
  /// Δ of a message of these values, none of them 0: of those that `select` chose it is `length()` or more. Where sums
  /// of several ranks' messages travel on, ranks that have the same sum must write the same bytes, whatever Δ is
  /// theirs: with a budget the values say it. It is that of the smallest one, where all of them fit into 127 Δ; where
  /// one has nearly cancelled, or a few are huge, a Δ up to |v|_max / 127 that leaves less of Σ |v| to the dead zone
  /// and to what exceeds 127 Δ.
  float length_for(std::span<const float> values) const;
  /// A message of n values has taken so many bytes.
  void sent(std::size_t bytes, std::size_t n);
  void state(Archive& archive);

 private:
  float of_budget(std::span<const float> owed);
  void correct();
  void keep_largest(std::span<const float> owed, std::size_t most, std::vector<std::uint32_t>& news);

  StepRule rule_;
  double first_fraction_;              // f₀
  double fraction_;                    // f
  double bytes_ = 0.0, values_ = 0.0;  // of messages since the last selection
  double mean_square_ = 0.0;           // of what rounds add
  Iteration rounds_ = 0;
  float step_ = 0.0F;
  ExactSelect select_;
  std::vector<std::uint32_t> places_;
  std::vector<float> candidates_;
};

}  // namespace hearsay

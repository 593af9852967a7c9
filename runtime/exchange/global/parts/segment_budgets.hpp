#pragma once
// How many of its values each segment may send, so that all together send k: V of layer-wise top-k.
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/replica/parameters.hpp"

namespace hearsay {

/// Shares `total` out in proportion to `weights` (≥ 0), with at least one and at most `lengths[s]` for each s, none for
/// a length of 0; rounded by largest remainders, ties by lower s. The sum is `total`, or what comes nearest to it
/// within these limits. Equal inputs give equal outputs on every rank. Cost: about 100 passes.
std::vector<std::size_t> apportion(std::span<const float> weights, std::span<const std::size_t> lengths,
                                   std::size_t total);

/// V. Segments of fewer than `dense_below` values are always sent whole and do not compete.
class SegmentBudgets {
 public:
  /// At first V_s is the segment's length: everything is sent.
  SegmentBudgets(const Layout& layout, std::size_t dense_below);

  std::size_t operator[](SegmentId s) const { return budgets_[s]; }
  /// Values in segments that compete.
  std::size_t competing() const { return competing_; }

  /// counts_s ← how many of these positions in the block, ascending, lie in segment s.
  void count(std::span<const std::uint32_t> positions);
  /// To be added up over ranks between `count` and `share_out`: that makes V the same on all of them.
  std::span<float> counts() { return counts_; }
  /// V ← `total` among the competing segments, in proportion to the counts.
  void share_out(std::size_t total);

 private:
  const Layout& layout_;
  std::vector<std::size_t> lengths_;  // 0 where a segment does not compete
  std::vector<std::size_t> budgets_;
  std::vector<float> counts_;
  std::size_t competing_ = 0;
};

}  // namespace hearsay

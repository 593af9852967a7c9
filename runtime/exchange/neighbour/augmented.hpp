#pragma once
// What an exchange sends beside x: behind the n floats of every segment x_s some of its own, a_s.
//
//   the block of rank i:   x_0 a_0 | x_1 a_1 | …
//   mix:                   block_i ← Σ_j w_ij block_j, as dpsgd does with x
//
// A segment and what stands behind it are one segment of the block, with one event and one message. So an account of
// the block is one of the replica, with more bytes.
#include <functional>
#include <span>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {

/// How many floats stand behind a segment of n.
using Beside = std::function<std::size_t(std::size_t n)>;
/// The layout of the block.
Layout augmented(const Layout& layout, const Beside& beside);

/// In lockstep, without a delay, in the processor's memory.
class AugmentedLink {
 public:
  /// The block begins as the replica with `initial` in all places beside it, on every rank.
  AugmentedLink(const ExchangeContext& context, const Beside& beside, float initial);
  AugmentedLink(const AugmentedLink&) = delete;
  AugmentedLink& operator=(const AugmentedLink&) = delete;

  /// x_s and a_s of this rank's block.
  std::span<float> x(SegmentId s) { return block_.values.segment(block_.layout[s]).first(layout_[s].length); }
  std::span<float> beside(SegmentId s) { return block_.values.segment(block_.layout[s]).subspan(layout_[s].length); }
  /// The block's x ← the replica.
  void take_x();
  /// Sends the block to all neighbours of iteration k.
  void send(Iteration k) { link_.send(k); }
  /// Waits for theirs, mixes, and then: the replica ← the block's x.
  void mix(Iteration k);
  std::span<const std::uint8_t> events() const { return link_.every_segment(); }
  void state(Archive& archive) {
    archive.values("block", values_.span());
    link_.state(archive);
  }

 private:
  /// What the link works with: the block in place of the replica.
  ExchangeContext of_block(const ExchangeContext& context, float initial);

  ExchangeContext context_;
  const Layout& layout_;  // of the replica
  FloatBlock values_;
  Parameters block_;
  NeighbourLink link_;
};

}  // namespace hearsay

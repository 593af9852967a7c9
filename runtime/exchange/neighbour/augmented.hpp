#pragma once
// What an exchange sends beside x: behind the n floats of every segment x_s some of its own, a_s.
//
//   the block of rank i:   x_0 a_0 | x_1 a_1 | …
//   mix:                   block_i ← Σ_j w_ij block_j, as dpsgd does with x
//
// A segment and what stands behind it are one segment of the block, with one event and one message. So an account of
// the block is one of the replica, with more bytes.
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {

/// How many floats stand behind a segment of n.
using Beside = std::function<std::size_t(std::size_t n)>;

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
  void send(Iteration k);
  /// Waits for theirs, mixes, and then: the replica ← the block's x.
  void mix(Iteration k);
  std::span<const std::uint8_t> events() const { return every_segment_; }
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
  std::vector<std::uint8_t> every_segment_;
};

/// What an algorithm on such a link says of itself.
struct AugmentedAlgorithm {
  Beside beside;
  std::size_t blocks = 0;  ///< of n floats that it keeps, beside the link's
  double words = 0.0;      ///< floats that it reads or writes in an iteration for each of the n, beside the link's
  bool along_arcs = false;
  bool keeps_mass = false;
  std::vector<std::string> (*warnings)(const Topology&) = [](const Topology&) { return std::vector<std::string>(); };
  std::function<std::unique_ptr<Exchange>(const ExchangeContext&)> build;
};
std::unique_ptr<ExchangePlan> augmented_plan(AugmentedAlgorithm algorithm);

/// Reads `exchange.schedule`, of which there is one. `why_not` is what is said to `asynchronous`.
void read_lockstep(Config& exchange, std::string_view why_not);

}  // namespace hearsay

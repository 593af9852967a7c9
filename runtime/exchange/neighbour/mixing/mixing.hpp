#pragma once
// Mixing rules: how a rank pulls its replica x_i towards what it knows of its neighbours.
#include <functional>
#include <memory>
#include <span>

#include "base/config/table.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/mixing_passes.hpp"

namespace hearsay {

/// What a rule mixes, by passes of the device that all spans lie on.
struct Mixing {
  const Layout& layout;
  float self_weight;                       ///< w_ii
  std::span<const MixEdge> edges;          ///< in the order in which they are added
  std::span<const std::uint8_t> segments;  ///< those with segments[s] ≠ 0 are mixed
  Device& device;
  bool by_events = false;  ///< only what has crossed an edge moves, whatever the rule

  bool whole() const;
};

/// A term of the sum that mixing adds to x: weight · (x̂_j − x̂_i) over segment s.
struct Move {
  std::size_t edge;
  SegmentId segment;
  float weight;
  bool crossed_only;  ///< only the values of s that have crossed the edge
};

class MixingRule {
 public:
  virtual ~MixingRule() = default;
  /// Changes x in place. Deterministic: edges in the given order, elementwise, whatever the device.
  virtual void mix(const Mixing& mixing, std::span<float> x) const = 0;
  /// Whether, in lockstep, the mean over ranks stays where it is for any pattern of events.
  virtual bool keeps_mean() const { return false; }
  /// The moves that `mix` adds. Where the mean is kept there is for every move of i the opposite one of j.
  virtual void each_move(const Mixing& mixing, const std::function<void(const Move&)>& tell) const = 0;
  /// γ: the part of w_ij by which a difference moves x.
  virtual double step() const { return 1.0; }
  /// Whether every iteration mixes with the copies that there are, or only what has just crossed.
  virtual bool repeats() const { return true; }
  /// Whether `MixEdge::ours` is read; keeping it costs one block (lockstep) or one block an edge (asynchronous).
  virtual bool needs_own_copy() const { return false; }
};

/// How soon a move shows in the copies that later moves are made of.
struct Settling {
  double iterations = 1.0;   ///< until it can show at all
  double sends = 1.0;        ///< until most of a change has arrived
  bool alternating = false;  ///< ranks go at speeds of their own: how long lies between moves is told, not known
};

/// block ← block + scale · the move. A block of the layout's: the replica, or what learns from its moves.
void add_move(const Mixing& mixing, const Move& move, float scale, std::span<float> block);
/// x ← x + all moves of a rule that keeps the mean.
void add_moves(const Mixing& mixing, const MixingRule& rule, std::span<float> x);
/// Calls `mix_part` with everything, or, where only some segments are mixed, with one after the other.
void by_parts(const Mixing& mixing, std::span<float> x,
              const std::function<void(std::span<const MixEdge> edges, std::span<float> x)>& mix_part);

using MixingEntry = Entry<MixingRule>;
std::span<const MixingEntry> mixing_rules();
std::unique_ptr<MixingRule> make_stale();
std::unique_ptr<MixingRule> make_difference(float gamma);
std::unique_ptr<MixingRule> make_arrival();

}  // namespace hearsay

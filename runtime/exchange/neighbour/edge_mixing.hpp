#pragma once
// One mixing of a replica with what its edges hold.
//   drift learns of the moves;  x ← mix(x, x̂);  where copies follow, they make them, too;  nothing is news any more
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {

class EdgeMixing {
 public:
  /// All of these must outlive it. `drift`: none where there is no correction. `by_events`: only what has crossed an
  /// edge moves, whatever the rule, as always where copies follow.
  EdgeMixing(const ExchangeContext& context, NeighbourLink& link, const MixingRule& rule, DriftCorrection* drift,
             bool by_events = false)
      : context_(context), link_(link), rule_(rule), drift_(drift), by_events_(by_events || link.copies_follow()) {}
  /// Mixes these segments (segments[s] ≠ 0) with the copies that iteration k hears of.
  void mix(Iteration k, std::span<const std::uint8_t> segments);

 private:
  const ExchangeContext& context_;
  NeighbourLink& link_;
  const MixingRule& rule_;
  DriftCorrection* const drift_;
  const bool by_events_;
};

}  // namespace hearsay

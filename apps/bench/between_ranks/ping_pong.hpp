#pragma once
// α and β of a link, measured (runtime/exchange/cost/alpha_beta.hpp says what they are).
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/exchange/cost/alpha_beta.hpp"
#include "runtime/transport/peers.hpp"

namespace hearsay {

/// Half a round trip between two ranks.
struct PingPong {
  std::size_t bytes = 0;
  double one_way_s = 0.0;  ///< median
};

/// Between this rank and `other`, of which just one `leads`: one 4-byte message and five of 64 kB to 16 MB, each at
/// least five times and at most `repeats` times. After the first that takes 0.2 s nothing longer is tried. Collective
/// over the two; the times are the leader's.
std::vector<PingPong> ping_pong(Peers& peers, int other, bool leads, int repeats);

/// α is the time of the first, smallest message; β minimises the sum of squared relative errors of α + w β over the
/// others, so that no size counts more than another. At least two messages (std::logic_error).
AlphaBeta fitted(std::span<const PingPong> times);

}  // namespace hearsay

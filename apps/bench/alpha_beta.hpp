#pragma once
// The α-β model: a message of w words of 4 bytes takes α + w β seconds. α and β are measured; what a collective should
// then take is computed from the messages and words of the rank that sends or receives most, one after the other.
//
//   m values, k entries a rank (an entry is a value and a position: 2 words), P ranks, L = ⌈log2 P⌉
//   dense ring               2 (P − 1) α + 2 (P − 1)/P m β        (also held against MPI's own all-reduce)
//   all-gather of top-k      L α + 2 (P − 1) k β                   (topk, gtopk_naive)
//   gTop-k tree              2 L α + 4 L k β
//   gTop-k butterfly         log2 P (α + 2 k β); if P is no power of two, ⌊log2 P⌋ + 2 instead of log2 P
//
// patarasuk2009bandwidth, bruck1997efficient, shi2019gtopk (table I). The model knows no computing (decoding, merging,
// adding), no headers, no other rank on the same core, and no memory bus that ranks share.
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/collectives/peers.hpp"

namespace hearsay {

struct AlphaBeta {
  double alpha_s = 0.0;  ///< of a message
  double beta_s = 0.0;   ///< of a word of 4 bytes
};

/// What the busiest rank does, one thing after the other.
struct CommunicationCost {
  double messages = 0.0, words = 0.0;
  double seconds(const AlphaBeta& model) const { return messages * model.alpha_s + words * model.beta_s; }
};

CommunicationCost ring_cost(int ranks, std::size_t values);
CommunicationCost gather_cost(int ranks, std::size_t k);
CommunicationCost tree_cost(int ranks, std::size_t k);
CommunicationCost butterfly_cost(int ranks, std::size_t k);

/// Half a round trip between ranks 0 and 1.
struct PingPong {
  std::size_t bytes = 0;
  double one_way_s = 0.0;  ///< median
};

/// One 4-byte message and five of 64 kB to 16 MB, each at least five times and at most `repeats` times. Collective
/// over ranks 0 and 1 only; the times are rank 0's.
std::vector<PingPong> ping_pong(Peers& peers, int repeats);

/// α is the time of the first, smallest message; β minimises the sum of squared relative errors of α + w β over the
/// others, so that no size counts more than another. At least two messages (std::logic_error).
AlphaBeta fitted(std::span<const PingPong> times);

}  // namespace hearsay

#pragma once
// gTopKAllReduce: the k largest entries of a sum of sparse vectors, found by merging two at a time and cutting to k
// after each merge. Shi et al., A distributed synchronous SGD algorithm with global Top-k sparsification for low
// bandwidth networks, ICDCS 2019 (shi2019gtopk), Algorithm 3.
//
// The result is not the exact global top-k: an entry that a merge cuts off may come back from another part of the tree,
// with less than its full sum. Who owns what was cut off is the ResidualRule.
#include <cstddef>

#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/transport/peers.hpp"

namespace hearsay {

/// - `published`: a rank takes back its own value if its position is not in the result. What a merge has cut off is
///   lost if the position comes back from elsewhere.
/// - `merger`: the rank that merges keeps what it cuts off.
/// - `owner`: a rank takes back its own value if a merge on its path has cut off its position.
/// The last two conserve mass: result + Σ returned = Σ contributions.
enum class ResidualRule { published, merger, owner };

struct GTopKOptions {
  std::size_t k = 1;
  ResidualRule rule = ResidualRule::merger;
};

struct GTopKResult {
  SparseVector result;    ///< at most k entries, the same bits on every member
  SparseVector returned;  ///< what this member's residual takes back
  SparseVector included;  ///< the part of its own contribution that is in the result
  double lost_mass = 0;   ///< Σ |value| of entries cut off here and neither applied nor returned (`published` only)
};

/// Binomial tree to member 0 and back, any number of members. Cost on the busiest member (0): ⌈log2 P⌉ messages of at
/// most k entries in and as many out; `owner` adds k bits to each message back.
/// Throws std::logic_error if `owner` is asked for with a wire that rounds: sums of rounded values have no owner.
GTopKResult gtopk_tree(const Group& group, const SparseVector& own, const SparseWire& wire,
                       const GTopKOptions& options);

/// Butterfly (recursive doubling) among the largest power of two of members; the others fold in before and are told
/// after. Cost per member: log2 P messages of at most k entries each way; one more for members that fold. With a power
/// of two the result is the tree's.
GTopKResult gtopk_butterfly(const Group& group, const SparseVector& own, const SparseWire& wire,
                            const GTopKOptions& options);

}  // namespace hearsay

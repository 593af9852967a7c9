#pragma once
// The sum of sparse vectors by an all-gather: every member adds all of them.
#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {

/// What came out of a sparse sum over all ranks.
struct SparseSum {
  SparseVector total;     ///< the same bits on every rank
  SparseVector returned;  ///< what this rank's residual takes back
  SparseVector included;  ///< the part of its own contribution that is in `total`
};

/// How many lists as long as the longest contribution such a sum has in memory at once, on each of so many ranks:
/// everybody's, the sums of their halves and the sum of these; the own one, its message, what of it travels and what
/// rounding keeps back, which has room for both. While messages are gathered there are as many of them and no more
/// lists than the own ones.
inline std::size_t gathered_sum_lists(int ranks) { return 3 * static_cast<std::size_t>(ranks) + 5; }
/// The same of a mean over those who have sent: with the sum, and who has sent what.
inline std::size_t gathered_mean_lists(int ranks) {
  return gathered_sum_lists(ranks) + static_cast<std::size_t>(ranks);
}

/// Sum of all members' vectors by an all-gather, pairwise in the order of the group. Cost: that of `all_gather`.
SparseSum gathered_sum(const Group& group, const SparseVector& own, const SparseWire& wire);
/// The same with the mean in place of the sum: at every position over the members whose vector has a value there.
SparseSum gathered_mean_of_senders(const Group& group, const SparseVector& own, const SparseWire& wire);

}  // namespace hearsay

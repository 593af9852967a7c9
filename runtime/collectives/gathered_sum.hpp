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

/// Sum of all members' vectors by an all-gather, pairwise in the order of the group. Cost: that of `all_gather`.
SparseSum gathered_sum(const Group& group, const SparseVector& own, const SparseWire& wire);
/// The same with the mean in place of the sum: at every position over the members whose vector has a value there.
SparseSum gathered_mean_of_senders(const Group& group, const SparseVector& own, const SparseWire& wire);

}  // namespace hearsay

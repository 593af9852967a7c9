// HiTopKComm, M nodes of N ranks, messages of b bytes for a shard of n/N values:
//   inside:   (N − 1) α + (N − 1)/N n β for the dense sum, and as much again for the last step, or
//             ⌈log2 N⌉ α + (N − 1) f/4 β where it passes f bytes of messages on
//   between:  ⌈log2 M⌉ α + (M − 1) b/4 β
// shi2021towards, section 4.
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

ExchangeCost hierarchical_cost(const SparseShape& shape, int node_size, std::size_t forwarded_bytes,
                               const CostAssumptions& assumptions) {
  const double inside_ranks = node_size, n = static_cast<double>(shape.values);
  const int nodes = shape.ranks / node_size;
  const CommunicationCost half_ring{.messages = inside_ranks - 1.0, .words = (inside_ranks - 1.0) / inside_ranks * n};
  const CommunicationCost last = forwarded_bytes > 0 ? gather_cost(node_size, forwarded_bytes) : half_ring;
  const CommunicationCost across = gather_cost(nodes, shape.message_bytes);
  ExchangeCost cost{.pattern = Pattern::shifting};
  const bool node_fits_host = node_size * assumptions.hosts <= shape.ranks;
  CommunicationCost& within = node_fits_host ? cost.inside : cost.between;
  within = within + half_ring + last;
  CommunicationCost& between = assumptions.hosts > 1 ? cost.between : cost.inside;
  between = between + across;
  cost.sent_bytes = bytes_per_word * (half_ring.words + last.words + across.words);
  const auto k = static_cast<double>(shape.k);
  cost.local = selection_work(n / inside_ranks, k, shape.selector_reads) +
               LocalWork{.moved_bytes = bytes_per_word * (1.5 * half_ring.words + 4.0 * n),  // zeros; the mean
                         .merged_entries = rounds(nodes) * nodes * k};
  return cost;
}

}  // namespace hearsay

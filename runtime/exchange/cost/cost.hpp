#pragma once
// What one iteration of an exchange costs, by formulas: messages and words of the busiest rank, bytes, work in memory.
// One file a family of algorithms; the exchanges call them with their own settings (ExchangePlan::cost).
//
// P ranks on M hosts, n values, messages of b bytes (values, positions and headers), L = ⌈log2 P⌉. Where ranks run on
// several hosts, all messages of an algorithm that does not know hosts are taken to go between hosts.
#include <cstddef>

#include "runtime/exchange/cost/alpha_beta.hpp"
#include "runtime/exchange/cost/network.hpp"

namespace hearsay {

/// What a formula cannot know.
struct CostAssumptions {
  int hosts = 1;
  double event_fraction = 1.0;  ///< of the segments that a trigger lets travel, on average
};

/// Work of the computing thread beside forward and backward pass.
struct LocalWork {
  double moved_bytes = 0.0;      ///< read or written
  double read_bytes = 0.0;       ///< in passes that only read
  double selected_values = 0.0;  ///< that a top-k chooses among
  double kept_entries = 0.0;     ///< that a selector chooses
  double merged_entries = 0.0;   ///< of sparse lists that are merged
  double seconds(const Network& network) const {
    return moved_bytes * network.memory_s + read_bytes * network.read_s + selected_values * network.selection_s +
           kept_entries * network.kept_s + merged_entries * network.merge_s;
  }
};
LocalWork operator+(const LocalWork& a, const LocalWork& b);
LocalWork operator*(double times, const LocalWork& work);

/// r += g, the choice of `kept` of so many values, their clearing. `reads` as Selector::reads says.
LocalWork selection_work(double values, double kept, double reads);

/// Where long messages go while this rank sends: nowhere, back on the same link, or on to the next rank.
enum class Pattern { one_way, crossing, shifting };

struct ExchangeCost {
  CommunicationCost inside{}, between{};  ///< within hosts, and between them
  double sent_bytes = 0.0;                ///< values, positions and headers; the mean over ranks
  LocalWork local{};
  Pattern pattern = Pattern::one_way;
  double message_bytes = 0.0;  ///< of a message that carries values; 0: all do, and are taken to be equally long
  bool overlaps = false;       ///< messages travel during forward or backward pass
  bool waits = true;           ///< false: asynchronous, nobody waits for messages
};

/// Time of the messages alone, one after the other.
double communication_s(const ExchangeCost& cost, const Network& network);
/// Time of an iteration whose forward and backward pass take `compute_s`. Messages that overlap them are taken to be
/// hidden as far as the passes last; asynchronous ones entirely.
double iteration_s(const ExchangeCost& cost, const Network& network, double compute_s);

/// A cost whose messages are all between hosts, or all within one.
ExchangeCost flat_cost(const CommunicationCost& messages, double sent_bytes, Pattern pattern,
                       const CostAssumptions& assumptions);

// dense.cpp
CommunicationCost ring_cost(int ranks, std::size_t values);
ExchangeCost allreduce_cost(int ranks, std::size_t values, std::size_t buckets, const CostAssumptions& assumptions);

// sparse.cpp
CommunicationCost gather_cost(int ranks, std::size_t message_bytes);
CommunicationCost tree_cost(int ranks, std::size_t message_bytes);
CommunicationCost butterfly_cost(int ranks, std::size_t message_bytes);
/// `k` entries a rank of `values`.
struct SparseShape {
  int ranks = 1;
  std::size_t values = 0, k = 0, message_bytes = 0;
  double selector_reads = 0.0;  ///< Selector::reads
};
ExchangeCost gathered_cost(const SparseShape& shape, const CostAssumptions& assumptions);
ExchangeCost gtopk_cost(const SparseShape& shape, bool butterfly, const CostAssumptions& assumptions);

// layerwise.cpp: k and message_bytes of all gathered segments together; `segments` counts those of the ring, too
struct RingedSegments {
  std::size_t segments = 0, values = 0;
};
ExchangeCost layerwise_cost(const SparseShape& shape, std::size_t segments, const RingedSegments& rings,
                            const CostAssumptions& assumptions);

// hierarchical.cpp: nodes of `node_size` ranks; `message_bytes` of a shard; `forwarded_bytes` of the messages that the
// last step passes on, 0 where it passes the dense shard
ExchangeCost hierarchical_cost(const SparseShape& shape, int node_size, std::size_t forwarded_bytes,
                               const CostAssumptions& assumptions);

// sharded.cpp: k and message_bytes of a push to one server, `pull_bytes` of a server's message to all
ExchangeCost sharded_cost(const SparseShape& shape, std::size_t pull_bytes, const CostAssumptions& assumptions);

// neighbour.cpp
struct NeighbourShape {
  int degree = 0;          ///< the highest
  double mean_degree = 0;  ///< directed edges a rank
  std::size_t values = 0;
  double packet_bytes = 0;  ///< the average packet
  LocalWork selection{};    ///< a rank's, where segments travel sparse
  bool own_copy = false;    ///< mixing also reads what neighbours hold of this rank
};
ExchangeCost neighbour_cost(const NeighbourShape& shape, const CostAssumptions& assumptions);

}  // namespace hearsay

#pragma once
// What `hearsay probe` measures of the network and the machines of a job.
#include <functional>
#include <string>

#include "runtime/exchange/cost/network.hpp"

namespace hearsay {

/// α and β of the links between rank 0 and every other rank, one after the other, by ping-pong; then, on all ranks at
/// once, what sums, selections and merges take on the slowest. Collective, with MPI started, over at least two ranks.
/// `begun` is told on rank 0 what is measured next. Complete on rank 0 only.
Network measure_network(const std::function<void(const std::string& what)>& begun);

/// The slowest of the links of one kind: by β, and by α. `fallback` if there is none.
AlphaBeta slowest_link(const std::vector<Link>& links, bool same_host, const AlphaBeta& fallback);

}  // namespace hearsay

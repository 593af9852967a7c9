#pragma once
// Where push-sum's weights settle.
#include <vector>

#include "topology/topology.hpp"

namespace hearsay {

/// w = W w with Σ w = P, one a rank, to about 1e-6: all 1 unless the graph is directed and gives some ranks more than
/// they give. At most 64 P passes over the edges.
std::vector<double> steady_weights(const Topology& topology);

}  // namespace hearsay

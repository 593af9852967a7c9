// The two loops under every mixing rule.
// Cost: mix_row reads deg + 1 blocks and writes one, in pieces that stay in the first-level cache between
// neighbours, so that x crosses the memory bus once each way.
#include <algorithm>
#include <cstddef>

#include "runtime/algorithms/neighbour/mixing/mixing.hpp"

namespace hearsay {

void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) {
  constexpr std::size_t piece = 2048;
  for (std::size_t start = 0; start < x.size(); start += piece) {
    const std::size_t length = std::min(piece, x.size() - start);
    float* const own = x.data() + start;
    for (std::size_t i = 0; i < length; ++i) own[i] *= self_weight;
    for (const MixEdge& edge : edges) {
      const float* const theirs = edge.theirs.data() + start;
      const float weight = edge.weight;
      for (std::size_t i = 0; i < length; ++i) own[i] += weight * theirs[i];
    }
  }
}

void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += weight * (theirs[i] - ours[i]);
}

}  // namespace hearsay

#pragma once
// Fragments of a model, each with a time of its own in the round: Streaming DiLoCo.
#include <cstddef>
#include <vector>

#include "runtime/replica/layout.hpp"
#include "runtime/transport/ledger.hpp"

namespace hearsay {

/// A run of whole segments.
struct Fragment {
  std::size_t offset = 0, length = 0;  ///< floats, in the block
  SegmentRange segments{};
  Iteration ends = 0;  ///< its round ends after so many of the H local steps, in 1 … H
};

/// `count` fragments of nearly n / count values, whose rounds end H / count steps apart, the last one's after H. Throws
/// ConfigError where there are fewer segments.
std::vector<Fragment> fragments_of(const Layout& layout, std::size_t count, Iteration local_steps);

}  // namespace hearsay

#pragma once
// Momentum correction on the GPU: what error feedback collects of a gradient.
//   u ← m u + s g,         g ← u              (Nesterov: u ← m (u + s g), g ← u + s g)
// lin2018dgc, section 3; the same bits as ErrorFeedback on the processor, which adds g to r after it.
// Cost: one launch; 16 bytes a value.
#include <algorithm>
#include <cstdint>

#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

struct AddMomentum {
  static constexpr unsigned threads = 256;
  struct Shared {};
  float* g;
  float* u;
  std::uint64_t n;
  bool aligned;  // both
  float momentum, scale;
  bool nesterov;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      const std::uint64_t step = std::uint64_t{block.blocks()} * 4 * threads;
      for (std::uint64_t first = (std::uint64_t{block.index()} * threads + t) * 4; first < n; first += step)
        add<Block>(first);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void add(std::uint64_t first) const {
    Float4 gradient = load4<Block>(g, first, n, aligned), sum = load4<Block>(u, first, n, aligned);
    for (unsigned c = 0; c < 4; ++c) {
      const float step = scale * gradient.at[c];
      sum.at[c] = nesterov ? momentum * (sum.at[c] + step) : momentum * sum.at[c] + step;
      gradient.at[c] = nesterov ? sum.at[c] + step : sum.at[c];
    }
    store4<Block>(sum, u, first, n, aligned);
    store4<Block>(gradient, g, first, n, aligned);
  }
};

/// n values each, in the machine's memory.
template <class Machine>
void add_momentum(Machine& machine, float momentum, bool nesterov, float scale, float* g, float* u, std::uint64_t n) {
  const std::uint64_t wanted = ceil_div(n, 4 * AddMomentum::threads), most = 4 * machine.resident_blocks();
  machine.run(static_cast<unsigned>(std::min(wanted, most)),
              AddMomentum{g, u, n, can_vectorise(g, u), momentum, scale, nesterov});
}

}  // namespace hearsay::device

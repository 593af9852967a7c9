#pragma once
// Where a lockstep rank takes its gradient: at the model that it sends, or at the mixed one.
//   consensus:  x ← W x − η g(x)            computing hides the messages: D-PSGD's order
//   diffusion:  x ← W x;  x ← x − η g(x)    combine, then adapt: waits first, and stands larger steps
// tu2012diffusion: mixing never makes diffusion unstable where every rank alone is stable (ηh < 2, h the curvature),
// and may make consensus so: ηh < 2 − s, s = 1 − λ_min(W). With drift correction diffusion is exact diffusion
// (yuan2018exact), consensus EXTRA (shi2015extra). Stability is not accuracy: in every pair of runs that was measured
// ranks end further apart under diffusion, on a sparse ring twice as far.
// Deviates from the papers in: mixing by events, as the exchange has it. Asynchronous ranks have no such choice: they
// move by their own events before the gradient and by the others' when these have come (turns.hpp).
// Cost: no byte, no memory; messages travel while nobody computes.
#include "runtime/exchange/neighbour/link/options.hpp"

namespace hearsay {

enum class Strategy { consensus, diffusion };

/// Reads `exchange.strategy`. Diffusion is for lockstep without a delay.
Strategy read_strategy(Config& exchange, const LinkOptions& link);

}  // namespace hearsay

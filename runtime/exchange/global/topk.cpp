// Top-k S-SGD: every rank's largest values, gathered everywhere and added.
//   r ← r + g;  v_i ← top_k(r);  r ← r − v_i;  g ← (1/P) Σ_i v_i
// shi2019gtopk, Algorithm 1 (with AllGather); error feedback from aji2017sparse.
// Deviates from the paper in: exactly k values, ties by lower position, where the paper takes those above the k-th;
// values and positions in one message; sums in a fixed order, so that replicas stay equal bit by bit. One rank drops
// what the selector drops, as many do.
// With the quantiser `dead_zone` T(r) is what is news of r, in integers of one step (sparsify/quantisers/sum_step.hpp).
// Cost per rank and iteration: ⌈log2 P⌉ messages, (P − 1) k entries of 8 bytes with the plain codec, 32 bytes of
// headers each; memory: one block of residuals; time: one pass for r + g, the selector's passes, log2 P passes over P k
// entries.
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {

ExchangeEntry topk_exchange() {
  return {.name = "topk",
          .summary = "S-SGD with every rank's top-k gathered everywhere; what is not sent stays in a residual",
          .equation = "r <- r + g;  v_i <- top_k(r);  r <- r - v_i;  g <- 1/P sum_i v_i",
          .cost = "ceil(log2 P) messages, (P - 1) k entries of 8 bytes a rank; one block of residuals",
          .citation = "shi2019gtopk, Algorithm 1; aji2017sparse",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return plan_sparse_sgd({exchange, root, of_sums}, [] { return gathered_collective(); });
          }};
}

}  // namespace hearsay

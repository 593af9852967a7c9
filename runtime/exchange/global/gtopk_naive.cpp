// Global Top-k S-SGD, the plain way: the exact k largest of the sum of all ranks' top-k.
//   r ← r + g;  v_i ← top_k(r);  r ← r − v_i;  s ← Σ_i v_i;  s_k ← top_k(s);  r ← r + (v_i where s_k has no entry)
//   g ← s_k / P
// shi2019gtopk, Algorithm 2. It is what `gtopk` approximates with fewer bytes.
// Deviates from the paper in: exactly k values, ties by lower position; sums in a fixed order.
// Cost: that of `topk`, and one more selection of k among at most P k entries on every rank.
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {
namespace {

/// Leaves the k largest of the sum; what this rank gave elsewhere returns to it.
class KeepLargest {
 public:
  void operator()(SparseSum& found, std::size_t k) const {
    truncation_->keep_largest(found.total, k);
    found.returned = sum(without(found.included, found.total.indices), found.returned);
    found.included = restricted(found.included, found.total.indices);
  }

 private:
  std::shared_ptr<Truncation> truncation_ = std::make_shared<Truncation>();
};

}  // namespace

ExchangeEntry gtopk_naive_exchange() {
  return {.name = "gtopk_naive",
          .summary = "S-SGD with the exact k largest of the sum of all top-k: the oracle of `gtopk`",
          .equation = "s <- sum_i top_k(r_i);  s_k <- top_k(s);  r_i takes back its v_i outside s_k;  g <- s_k / P",
          .cost = "that of `topk`, and a selection among P k entries",
          .citation = "shi2019gtopk, Algorithm 2",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return plan_sparse_sgd({exchange, root, of_sums}, [] { return gathered_collective(KeepLargest()); });
          }};
}

}  // namespace hearsay

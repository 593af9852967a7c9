// Global Top-k S-SGD, the plain way: the exact k largest of the sum of all ranks' top-k.
//   r ← r + g;  v_i ← top_k(r);  r ← r − v_i;  s ← Σ_i v_i;  s_k ← top_k(s);  r ← r + (v_i where s_k has no entry)
//   g ← s_k / P
// shi2019gtopk, Algorithm 2. It is what `gtopk` approximates with fewer bytes.
// Deviates from the paper in: exactly k values, ties by lower position; sums in a fixed order.
// Cost: that of `topk`, and one more selection of k among at most P k entries on every rank.
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {
namespace {

class ExactGlobalTopK final : public SparseCollective {
 public:
  SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) override {
    SparseSum found = gathered_sum(group, own, wire);
    truncation_.keep_largest(found.total, k);
    found.returned = hearsay::sum(without(found.included, found.total.indices), found.returned);
    found.included = restricted(found.included, found.total.indices);
    return found;
  }
  // Everybody's message and values, the own ones and the sum.
  std::size_t lists(int ranks) const override { return 2 * static_cast<std::size_t>(ranks) + 2; }
  std::size_t worst_case_bytes(int ranks, std::size_t message) const override {
    const auto p = static_cast<std::size_t>(ranks);
    return p * (p - 1) * (message + gather_header_bytes);
  }
  ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const override {
    shape.message_bytes += gather_header_bytes;
    return gathered_cost(shape, assumptions);
  }

 private:
  Truncation truncation_;
};

}  // namespace

ExchangeEntry gtopk_naive_exchange() {
  return {.name = "gtopk_naive",
          .summary = "S-SGD with the exact k largest of the sum of all top-k: the oracle of `gtopk`",
          .equation = "s <- sum_i top_k(r_i);  s_k <- top_k(s);  r_i takes back its v_i outside s_k;  g <- s_k / P",
          .cost = "that of `topk`, and a selection among P k entries",
          .citation = "shi2019gtopk, Algorithm 2",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return plan_sparse_sgd({exchange, root}, [] { return std::make_unique<ExactGlobalTopK>(); });
          }};
}

}  // namespace hearsay

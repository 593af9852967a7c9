// Keeps every value: no sparsification.
//   indices = {0, …, n − 1}, whatever k
// No paper; the base line of all of them.
// Deviates from the paper in: nothing.
// Cost: one read of the values (the check for NaN and infinities), n indices written; no state.
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class Dense final : public Selector {
 public:
  std::unique_ptr<Selector> fresh() const override { return std::make_unique<Dense>(*this); }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    require_selectable(k, values.size());
    require_finite(values);
    all_positions(values.size(), indices);
  }
  std::size_t most(std::size_t, std::size_t n) const override { return n; }
};

std::unique_ptr<Selector> make_dense(Config&) { return std::make_unique<Dense>(); }

}  // namespace

SelectorEntry dense_selector() {
  return {.name = "dense",
          .summary = "keeps every value: no sparsification",
          .equation = "indices = {0, …, n − 1}",
          .cost = "one read of the values; n values travel; no state",
          .citation = "none: the base line",
          .make = make_dense};
}

}  // namespace hearsay

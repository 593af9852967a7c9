// The k values of largest magnitude, exactly.
//   k = kept_count(density, n);  indices = the first k positions by (|x_i| descending, i ascending), written ascending
// Aji and Heafield, Sparse communication for distributed gradient descent, EMNLP 2017 (aji2017sparse); the selection
// by bins of the floats' leading bits is a radix select (Alabi et al., JEA 2012, alabi2012fast).
// Deviates from the paper in: exact, where the paper samples a threshold (that is `sampled`); ties are decided (lower
// index first), so that equal inputs give equal messages on every machine.
// Cost: 1 read of the values and a sample (2 reads more where that misleads), no sorting; 8 bytes a candidate, of which
// there are at most 8 k + 1024 as a rule (sparsify/search/exact_select.hpp), kept from call to call. With a gradient to
// be added, the threshold of the last call makes it one pass (sparsify/search/carried_select.hpp).
#include "sparsify/search/carried_select.hpp"
#include "sparsify/selectors/density.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class TopK final : public Selector {
 public:
  explicit TopK(double density) : density_(density) {}

  std::unique_ptr<Selector> fresh() const override { return std::make_unique<TopK>(density_); }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    select_.largest(values, k, indices);
  }
  void add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                      std::vector<std::uint32_t>& indices) override {
    carried_.add_and_select(values, addend, scale, k, indices);
  }
  std::size_t most(std::size_t k, std::size_t) const override { return k; }
  double density() const override { return density_; }
  SearchKind search_kind() const override { return SearchKind::largest; }
  Search next_search(std::size_t, std::size_t) override { return {.kind = SearchKind::largest}; }

 private:
  double density_;
  ExactSelect select_;
  CarriedSelect carried_;
};

std::unique_ptr<Selector> make_topk(Config& config) { return std::make_unique<TopK>(read_density(config)); }

}  // namespace

SelectorEntry topk_selector() {
  return {.name = "topk",
          .summary = "the k = max(1, round(density · n)) values of largest magnitude, exactly",
          .equation = "indices = the first k positions by (|x_i| descending, i ascending)",
          .cost =
              "1 read of the values and a sample, no sorting; k values and positions travel; scratch of 8 bytes a "
              "candidate, about 1.2 to 8 k of them",
          .citation = "aji2017sparse; radix select: alabi2012fast",
          .make = make_topk};
}

}  // namespace hearsay

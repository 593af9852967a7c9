// The values of largest magnitude of every chunk, exactly: no part of a tensor is silent because another is larger.
//   chunks of c values, the last one shorter;  K_j = ⌊k e_j / n⌋, e_j the end of chunk j;  of chunk j the first
//   K_j − K_{j−1} positions by (|x_i| descending, i ascending)
// Sarfi et al., Communication efficient LLM pre-training with SparseLoCo, 2025 (sarfi2025sparseloco): top-k of chunks
// of 4,096 values, 64 of each in its experiments, density 0.0156.
// Deviates from the paper in: chunks are runs of values, of each tensor (`scope: per_segment`) or of the whole model,
// where the deployed code cuts matrices into squares of 64 by 64; k is exact over all chunks, so a chunk may keep one
// value fewer than its neighbour.
// Cost: as `topk`'s; a chunk is a candidate as a whole, so scratch is 8 bytes a value of one chunk.
#include <algorithm>

#include "sparsify/search/exact_select.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/searches.hpp"
#include "sparsify/selectors/density.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class Chunked final : public Selector {
 public:
  Chunked(double density, std::size_t chunk) : density_(density), chunk_(chunk) {}

  std::unique_ptr<Selector> fresh() const override { return std::make_unique<Chunked>(density_, chunk_); }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    const std::size_t n = values.size();
    require_selectable(k, n);
    require_finite(values);
    indices.clear();
    for (std::size_t begin = 0, before = 0; begin < n; begin += chunk_) {
      const std::size_t end = std::min(n, begin + chunk_);
      const std::size_t until = share_before(end, k, n);
      select_.largest(values.subspan(begin, end - begin), until - before, of_chunk_);
      for (const std::uint32_t i : of_chunk_) indices.push_back(static_cast<std::uint32_t>(begin) + i);
      before = until;
    }
  }
  std::size_t most(std::size_t k, std::size_t) const override { return k; }
  double density() const override { return density_; }
  SearchKind search_kind() const override { return SearchKind::chunks; }
  Search next_search(std::size_t, std::size_t) override { return {.kind = SearchKind::chunks, .chunk = chunk_}; }

 private:
  double density_;
  std::size_t chunk_;
  ExactSelect select_;
  std::vector<std::uint32_t> of_chunk_;
};

std::unique_ptr<Selector> make_chunked(Config& config) {
  const double density = read_density(config);
  const auto chunk = config.integer("chunk", 4096, Range::at_least(1), "values that compete with each other");
  return std::make_unique<Chunked>(density, static_cast<std::size_t>(chunk));
}

}  // namespace

SelectorEntry chunked_selector() {
  return {
      .name = "chunked",
      .summary = "the largest magnitudes of every chunk of a few thousand values, exactly; k of them in all",
      .equation = "of chunk j the first floor(k e_j / n) − floor(k e_(j−1) / n) positions by |x_i|, e_j its end",
      .cost = "2 reads of the values, no sorting; k values and positions travel; scratch of 8 bytes a value of a chunk",
      .citation = "sarfi2025sparseloco",
      .make = make_chunked};
}

}  // namespace hearsay

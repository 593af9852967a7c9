// About k values of largest magnitude, by a threshold that a sample of the values suggests.
//   S = every stride-th value, from a random one on;  t = the round(k·|S|/n)-th largest magnitude in S
//   indices = {i : |x_i| ≥ t}
//   more than 1.3·k of them: the k largest of them;  fewer than 0.8·k: the k largest of all
// Aji and Heafield, Sparse communication for distributed gradient descent, EMNLP 2017, section 4 (aji2017sparse); the
// limits 0.8 and 1.3 and the selection among the survivors are those of Lin et al., ICLR 2018 (lin2018dgc).
// Deviates from the paper in: the sample is never so small that it holds fewer than 64 of the values to keep or 512 in
// all (0.1 % of a small layer says nothing); a value of just the threshold is kept; what overflows is cut by size, not
// by position, and what falls short is selected exactly instead of lowering the threshold step by step.
// Bound: 0.8·k ≤ count ≤ 1.3·k, and every value that is kept is at least as large as every one that is not.
// Cost: 2 reads of the values (4 where the exact selection steps in), a selection in the sample; scratch as `topk`.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/search/exact_select.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/searches.hpp"
#include "sparsify/selectors/density.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr double fewest_sampled = 512;  // values
constexpr double least_kept = 64;       // values of the sample above the threshold: their count is then good to 1/8

class Sampled final : public Selector {
 public:
  Sampled(double density, double sample, std::uint64_t seed) : density_(density), sample_(sample), seed_(seed) {}

  std::unique_ptr<Selector> fresh() const override { return std::make_unique<Sampled>(density_, sample_, seed_); }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    require_selectable(k, values.size());
    const Search search = next_search(k, values.size());
    if (search.stride == 1) {  // the sample would be everything
      exact_.largest(values, k, indices);
      return;
    }
    require_finite(values);
    const std::int32_t least = threshold(values, search);
    if (least == 0) {  // most values are 0, as in what changed since a sparse step: all of them would be collected
      exact_.largest(values, k, indices);
      return;
    }
    indices.clear();
    collect_from(least, values, indices);
    if (too_many(indices.size(), k)) {
      keep_largest(values, k, indices);
    } else if (too_few(indices.size(), k)) {
      exact_.largest(values, k, indices);
    }
  }
  SearchKind search_kind() const override { return SearchKind::sample; }
  Search next_search(std::size_t k, std::size_t n) override {
    const std::uint64_t call = calls_++;
    Search search{.kind = SearchKind::sample, .stride = k == 0 ? 1 : stride_for(k, n)};
    if (search.stride == 1) return search;
    Random random(stream_seed(seed_, "sampled selector", call));
    search.first = random.below(search.stride);
    const std::size_t size = (n - search.first + search.stride - 1) / search.stride;
    const double share = static_cast<double>(size) / static_cast<double>(n);
    const auto rank = static_cast<std::size_t>(std::llround(static_cast<double>(k) * share));
    search.rank = std::clamp<std::size_t>(rank, 1, size);
    return search;
  }
  std::size_t most(std::size_t k, std::size_t n) const override { return std::min(13 * k / 10, n); }
  double density() const override { return density_; }
  void state(Archive& archive) override { archive.value("selections so far", calls_); }
  double reads(std::size_t) const override { return 2.0; }  // finite? the collection

 private:
  /// Odd: an even stride would see but a part of the columns of most matrices.
  std::size_t stride_for(std::size_t k, std::size_t n) const {
    const auto all = static_cast<double>(n);
    const double size = std::max({sample_ * all, fewest_sampled, least_kept * all / static_cast<double>(k)});
    const auto stride = static_cast<std::size_t>(all / size);
    return stride < 3 ? 1 : (stride - 1) | 1;
  }

  /// As magnitude_bits.
  std::int32_t threshold(std::span<const float> values, const Search& search) {
    magnitudes_.clear();
    for (std::size_t i = search.first; i < values.size(); i += search.stride)
      magnitudes_.push_back(magnitude_bits(values[i]));
    const auto kth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(search.rank - 1);
    std::nth_element(magnitudes_.begin(), kth, magnitudes_.end(), std::greater<>());
    return *kth;
  }

  /// Keeps the k largest of the values at `indices`.
  void keep_largest(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) {
    survivors_.resize(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) survivors_[i] = values[indices[i]];
    exact_.largest(survivors_, k, kept_);
    for (std::size_t i = 0; i < k; ++i) indices[i] = indices[kept_[i]];
    indices.resize(k);
  }

  double density_, sample_;
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
  ExactSelect exact_;
  std::vector<std::int32_t> magnitudes_;  // of the sample
  std::vector<float> survivors_;
  std::vector<std::uint32_t> kept_;
};

std::unique_ptr<Selector> make_sampled(Config& config) {
  const double density = read_density(config);
  const double sample = config.real("sample", 0.001, Range::fraction_above_zero(),
                                    "fraction of the values in the sample; more where that is too few to tell");
  return std::make_unique<Sampled>(density, sample, read_selector_seed(config));
}

}  // namespace

SelectorEntry sampled_selector() {
  return {.name = "sampled",
          .summary = "about k values of largest magnitude, by a threshold taken from a sample",
          .equation = "indices = {i : |x_i| ≥ t}, t = the k-th largest magnitude as the sample has it; 0.8·k … 1.3·k",
          .cost = "2 reads of the values, 4 where the sample misleads; at most 1.3·k values and positions travel",
          .citation = "aji2017sparse, section 4; limits: lin2018dgc",
          .make = make_sampled};
}

}  // namespace hearsay

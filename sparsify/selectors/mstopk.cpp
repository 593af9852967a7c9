// k values of large magnitude, by bisection for a threshold: no sorting, only passes that count.
//   low = mean |x|, high = max |x|;  `steps` times: t = (low + high)/2, count = #{i : |x_i| ≥ t};
//     count ≤ k: upper = high = t;  else: lower = low = t
//   indices = {i : |x_i| ≥ upper} and, to make k, a random contiguous slice of {i : lower ≤ |x_i| < upper}
// Shi et al., Towards scalable distributed training of deep learning on public cloud clusters, MLSys 2021
// (shi2021towards), MSTopK.
// Deviates from the paper in: upper = ∞ and lower = 0 before the first step that sets them, so that k comes out for any
// values; the bisection ends early once count = k, which no later step can change.
// Bound: exactly k values; all ≥ upper are kept, none < lower is. The two come as close as `steps` halvings bring them
// where the k-th largest magnitude is above the mean; where it is not (k of about a third of the values or more), lower
// stays 0 and the slice is arbitrary.
// Cost: up to 3 + steps reads of the values (the paper's choice for GPUs; on a processor `topk` is several times
// faster); no scratch memory. The mean is added in the order of sparsify/quantisers/sides.hpp, which a GPU keeps, too
// (runtime/gpu/kernels/mstopk_algorithm.hpp).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/loops/read_ahead.hpp"
#include "base/loops/vector_code.hpp"
#include "base/random.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "sparsify/search/bisection.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/selectors/density.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::int64_t passes_beside_steps = 3;  // maximum; mean; the collection
constexpr std::size_t turn = 64;                 // values that are looked at together

[[gnu::always_inline]] inline std::uint32_t count_in_order(std::int32_t least, std::span<const float> values) {
  std::uint32_t count = 0;  // 32 bits, as wide as what is compared: vectorises
  for (std::size_t i = 0; i < values.size(); i += cache_line) read_ahead(values.data() + i);
  for (const float value : values) count += magnitude_bits(value) >= least ? 1U : 0U;
  return count;
}

// Four places of the block are read in turns: a processor fetches ahead in each of them, and one alone does not use the
// memory's bandwidth.
[[gnu::always_inline]] inline std::uint32_t count_in_turns(std::int32_t least, std::span<const float> values) {
  constexpr std::size_t places = 4;
  const std::size_t length = values.size() / (places * turn) * turn;  // of what is read from a place
  std::uint32_t count = count_in_order(least, values.subspan(places * length));
  for (std::size_t i = 0; i < length; i += turn)
    for (std::size_t place = 0; place < places; ++place)
      count += count_in_order(least, values.subspan(place * length + i, turn));
  return count;
}

std::size_t count_from(float threshold, std::span<const float> values) {
  const std::int32_t least = magnitude_bits(threshold);
  return in_vector_code([=]() __attribute__((always_inline)) { return count_in_turns(least, values); });
}

[[gnu::always_inline]] inline std::int32_t largest_in_order(std::span<const float> values) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < values.size(); i += cache_line) read_ahead(values.data() + i);
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return largest;
}

std::int32_t largest_magnitude(std::span<const float> values) {
  return in_vector_code([=]() __attribute__((always_inline)) { return largest_in_order(values); });
}

double mean_magnitude(std::span<const float> values) {
  constexpr double everything = std::numeric_limits<double>::infinity();
  return sum_sides(values, -everything, everything).mean(0);
}

Bracket bisect(std::span<const float> values, std::size_t k, std::uint32_t steps, const Halving& range) {
  const auto count = static_cast<std::uint32_t>(k);
  Bisection bisection{range, {.from_lower = static_cast<std::uint32_t>(values.size())}, steps};
  while (!bisection.done(count))
    bisection.take(static_cast<std::uint32_t>(count_from(static_cast<float>(bisection.range.middle()), values)), count);
  return bisection.bracket;
}

class MsTopK final : public Selector {
 public:
  explicit MsTopK(Config& config)
      : density_(read_density(config)),
        steps_(static_cast<std::uint32_t>(
            config.integer("steps", 30, Range::between(1, 1000), "passes that halve the range of thresholds"))),
        seed_(read_selector_seed(config)) {}

  std::unique_ptr<Selector> fresh() const override {
    auto same = std::make_unique<MsTopK>(*this);
    same->calls_ = 0;
    return same;
  }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    require_selectable(k, values.size());
    const std::int32_t largest = largest_magnitude(values);
    if (largest >= infinity_bits) require_finite(values);  // throws, with the position
    const Search search = next_search(k, values.size());
    indices.clear();
    if (k == 0 || k == values.size()) {
      all_positions(k, indices);
      return;
    }
    collect(values, k, bisect(values, k, steps_, {mean_magnitude(values), float_of(largest)}), search.draws, indices);
  }
  SearchKind search_kind() const override { return SearchKind::bisection; }
  Search next_search(std::size_t, std::size_t) override {
    Random random(stream_seed(seed_, "mstopk selector", calls_++));
    Search search{.kind = SearchKind::bisection, .steps = steps_};
    for (std::uint64_t& draw : search.draws) draw = random.engine()();
    return search;
  }
  std::size_t most(std::size_t k, std::size_t) const override { return k; }
  double density() const override { return density_; }
  void state(Archive& archive) override { archive.value("selections so far", calls_); }
  // In a normal tail the k-th and the next magnitude are about 1/(k t) apart, t the k-th, in standard deviations:
  // log2(k t (high − low)) halvings separate them, and then the count is k.
  double reads(std::size_t k) const override {
    constexpr double halvings_of_range = 4.0;  // log2(t (high − low)), for 1 % of 1e6 values or 0.1 % of 1e8
    const double halvings = std::log2(static_cast<double>(std::max<std::size_t>(k, 1))) + halvings_of_range;
    return static_cast<double>(passes_beside_steps) + std::min(static_cast<double>(steps_), halvings);
  }

 private:
  static void collect(std::span<const float> values, std::size_t k, const Bracket& bracket, const Draws& draws,
                      std::vector<std::uint32_t>& indices) {
    const Slice slice = slice_of(bracket, static_cast<std::uint32_t>(k), draws);
    const std::int32_t upper = magnitude_bits(bracket.upper);
    const std::int32_t lower = magnitude_bits(bracket.lower);
    std::size_t in_band = 0;
    indices.reserve(k);
    for (std::size_t begin = 0; begin < values.size(); begin += turn) {
      const std::size_t end = std::min(begin + turn, values.size());
      if (count_in_order(lower, values.subspan(begin, end - begin)) == 0) continue;  // nearly always
      for (std::size_t i = begin; i < end; ++i) {
        const std::int32_t magnitude = magnitude_bits(values[i]);
        if (magnitude < lower) continue;
        if (magnitude < upper) {
          const std::size_t place = in_band++;
          if (place < slice.first || place - slice.first >= slice.count) continue;
        }
        indices.push_back(static_cast<std::uint32_t>(i));
      }
    }
  }

  double density_;
  std::uint32_t steps_;
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
};

std::unique_ptr<Selector> make_mstopk(Config& config) { return std::make_unique<MsTopK>(config); }

}  // namespace

SelectorEntry mstopk_selector() {
  return {.name = "mstopk",
          .summary = "k values of large magnitude: bisection for a threshold, then a random slice to make up k",
          .equation = "indices = {|x_i| ≥ upper} and a random contiguous slice of {lower ≤ |x_i| < upper}, k in all",
          .cost = "up to steps + 3 reads of the values; k values and positions travel; no scratch memory",
          .citation = "shi2021towards, MSTopK",
          .make = make_mstopk};
}

}  // namespace hearsay

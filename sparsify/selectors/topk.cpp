// The k values of largest magnitude, exactly.
//   k = kept_count(density, n);  indices = the first k positions by (|x_i| descending, i ascending), written ascending
// Aji and Heafield, Sparse communication for distributed gradient descent, EMNLP 2017 (aji2017sparse); the selection
// by bins of the floats' leading bits is a radix select (Alabi et al., JEA 2012, alabi2012fast).
// Deviates from the paper in: exact, where the paper samples a threshold; ties are decided (lower index first), so that
// equal inputs give equal messages on every machine.
//
// How: |x| orders as an integer. A histogram over its leading 12 bits finds the band of magnitudes that holds the k-th
// largest value. All positions at or above the band are collected in order, and the band's own magnitudes settle the
// exact cut. Should the band hold much of the segment (values of nearly equal size), it is split again, by 10 and then
// by 9 bits, so time and memory stay linear for any input.
// Cost: 2 reads of the values (3 or 4 for nearly equal ones), no sorting; 4 bytes for each position and for each value
// of the band, kept from call to call.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sparsify/magnitude.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr int magnitude_width = 31;  // bits of |x|
constexpr std::array<int, 3> split_widths{12, 10, 9};
constexpr std::size_t most_bins = std::size_t{1} << split_widths[0];
constexpr std::size_t small = 4096;  // values that are cheaper to compare than to count

/// Neighbouring values often fall into one bin; counting them in turn in separate tables keeps one addition from
/// waiting for the one before.
constexpr std::size_t tables = 4;
constexpr std::size_t block = 64;  // values that are looked at together when few are kept

/// The magnitudes [low, low + 2^width) that hold the k-th largest value.
struct Band {
  std::int32_t low = 0;
  int width = magnitude_width;
  std::size_t inside = 0;  // values in the band
  std::size_t above = 0;   // values of larger magnitude, < k

  bool holds(std::int32_t bits) const { return (bits >> width) == (low >> width); }
};

class TopK final : public Selector {
 public:
  explicit TopK(Config& config)
      : density_(config.real("density", 0.1, Range::fraction_above_zero(),
                             "fraction of a segment's values that is kept; at least one value is")) {}

  std::size_t most(std::size_t n) const override { return kept_count(density_, n); }

  void select(std::span<const float> values, std::vector<std::uint32_t>& indices) override {
    if (values.size() > std::numeric_limits<std::uint32_t>::max())
      throw std::logic_error("topk: a segment of " + std::to_string(values.size()) + " values; positions have 32 bits");
    const std::size_t k = most(values.size());
    indices.clear();
    if (k == values.size()) {
      require_finite(values);
      indices.resize(k);
      std::iota(indices.begin(), indices.end(), 0U);
      return;
    }
    const Band band = find_band(values, k);
    collect(values, band, indices);
    trim(values, band, k, indices);
  }

 private:
  Band find_band(std::span<const float> values, std::size_t k);
  Band split(std::span<const float> values, const Band& band, int bits, std::size_t k);
  void count_all(std::span<const float> values, int width);
  void count_band(std::span<const float> values, const Band& band, int bits);
  void collect(std::span<const float> values, const Band& band, std::vector<std::uint32_t>& indices);
  void trim(std::span<const float> values, const Band& band, std::size_t k, std::vector<std::uint32_t>& indices);

  double density_;
  std::vector<std::uint32_t> counts_;  // (tables, bins); the first table is their sum once all are counted
  std::vector<std::int32_t> in_band_;  // magnitudes of the band, in any order
};

/// Splits until the band holds few values or a single magnitude. Throws DivergenceError if a value is not finite.
Band TopK::find_band(std::span<const float> values, std::size_t k) {
  Band band{.inside = values.size()};
  const std::size_t few = std::max(small, values.size() / 16);
  if (band.inside <= few) require_finite(values);
  for (const int bits : split_widths) {
    if (band.inside <= few) break;
    band = split(values, band, bits, k);
  }
  return band;
}

/// The part of `band` that holds the k-th largest value, one of 2^bits equal parts.
Band TopK::split(std::span<const float> values, const Band& band, int bits, std::size_t k) {
  const int width = band.width - bits;
  const std::size_t bins = std::size_t{1} << bits;
  if (band.width == magnitude_width) {
    count_all(values, width);
    if (std::any_of(counts_.begin() + (infinity_bits >> width), counts_.begin() + static_cast<std::ptrdiff_t>(bins),
                    [](std::uint32_t count) { return count > 0; }))
      require_finite(values);  // throws, with the position
  } else {
    count_band(values, band, bits);
  }
  Band part{.low = 0, .width = width, .inside = 0, .above = band.above};
  for (std::size_t bin = bins; bin-- > 0;) {
    part.inside = counts_[bin];
    if (part.above + part.inside >= k) {
      part.low = band.low | static_cast<std::int32_t>(bin << width);
      return part;
    }
    part.above += part.inside;
  }
  throw std::logic_error("topk: fewer than k values counted");
}

/// counts_[b] = how many values have the magnitude bits b, without the last `width`.
void TopK::count_all(std::span<const float> values, int width) {
  counts_.assign(tables * most_bins, 0);
  const std::size_t whole = values.size() - values.size() % tables;
  for (std::size_t i = 0; i < whole; i += tables) {
    for (std::size_t t = 0; t < tables; ++t) ++counts_[t * most_bins + (magnitude_bits(values[i + t]) >> width)];
  }
  for (std::size_t i = whole; i < values.size(); ++i) ++counts_[magnitude_bits(values[i]) >> width];
  for (std::size_t t = 1; t < tables; ++t) {
    for (std::size_t bin = 0; bin < most_bins; ++bin) counts_[bin] += counts_[t * most_bins + bin];
  }
}

/// counts_[b] = how many values of the band lie in its part b of 2^bits.
void TopK::count_band(std::span<const float> values, const Band& band, int bits) {
  const int width = band.width - bits;
  const std::int32_t mask = (1 << bits) - 1;
  counts_.assign(most_bins, 0);
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_bits(value);
    if (band.holds(magnitude)) ++counts_[(magnitude >> width) & mask];
  }
}

/// All positions whose magnitude is in the band or above it.
void TopK::collect(std::span<const float> values, const Band& band, std::vector<std::uint32_t>& indices) {
  const auto take = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (magnitude_bits(values[i]) >= band.low) indices.push_back(static_cast<std::uint32_t>(i));
    }
  };
  indices.reserve(band.above + band.inside);
  const std::size_t whole = values.size() - values.size() % block;
  for (std::size_t first = 0; first < whole; first += block) {
    std::int32_t hits = 0;
    for (std::size_t i = 0; i < block; ++i) hits += magnitude_bits(values[first + i]) >= band.low ? 1 : 0;
    if (hits > 0) take(first, first + block);
  }
  take(whole, values.size());
}

/// Drops positions of the band until k are left: the smallest magnitudes, and of equal ones the highest positions.
void TopK::trim(std::span<const float> values, const Band& band, std::size_t k, std::vector<std::uint32_t>& indices) {
  const std::size_t wanted = k - band.above;  // of the band, ≥ 1
  std::int32_t cut = band.low;
  std::size_t ties = wanted;  // values of magnitude `cut` to keep
  if (band.width > 0) {
    in_band_.clear();
    for (const std::uint32_t i : indices) {
      const std::int32_t magnitude = magnitude_bits(values[i]);
      if (band.holds(magnitude)) in_band_.push_back(magnitude);
    }
    const auto kth = in_band_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(in_band_.begin(), kth, in_band_.end(), std::greater<>());
    cut = *kth;
    ties = static_cast<std::size_t>(std::count(in_band_.begin(), kth + 1, cut));
  }
  std::erase_if(indices, [&](std::uint32_t i) {
    const std::int32_t magnitude = magnitude_bits(values[i]);
    if (magnitude != cut) return magnitude < cut;
    if (ties == 0) return true;
    --ties;
    return false;
  });
}

std::unique_ptr<Selector> make(Config& config) { return std::make_unique<TopK>(config); }

}  // namespace

SelectorEntry topk_selector() {
  return {.name = "topk",
          .summary = "the k = max(1, round(density · n)) values of largest magnitude, exactly",
          .equation = "indices = the first k positions by (|x_i| descending, i ascending)",
          .cost = "2 reads of the values, no sorting; k values and positions travel; scratch of about k + n / 16 words",
          .citation = "aji2017sparse; radix select: alabi2012fast",
          .make = make};
}

}  // namespace hearsay

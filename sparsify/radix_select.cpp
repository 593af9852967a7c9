#include "sparsify/radix_select.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "sparsify/magnitude.hpp"
#include "sparsify/positions.hpp"
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

}  // namespace

/// The magnitudes [low, low + 2^width) that hold the k-th largest value.
struct RadixSelect::Band {
  std::int32_t low = 0;
  int width = magnitude_width;
  std::size_t inside = 0;  // values in the band
  std::size_t above = 0;   // values of larger magnitude, < k

  bool holds(std::int32_t bits) const { return (bits >> width) == (low >> width); }
};

void RadixSelect::largest(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) {
  require_selectable(k, values.size());
  indices.clear();
  if (k == 0 || k == values.size()) {
    require_finite(values);
    all_positions(k, indices);
    return;
  }
  const Band band = find_band(values, k);
  indices.reserve(band.above + band.inside);
  collect_from(band.low, values, indices);
  trim(values, band, k, indices);
}

/// Splits until the band holds few values or a single magnitude. Throws DivergenceError if a value is not finite.
RadixSelect::Band RadixSelect::find_band(std::span<const float> values, std::size_t k) {
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
RadixSelect::Band RadixSelect::split(std::span<const float> values, const Band& band, int bits, std::size_t k) {
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
  throw std::logic_error("radix select: fewer than k values counted");
}

/// counts_[b] = how many values have the magnitude bits b, without the last `width`.
void RadixSelect::count_all(std::span<const float> values, int width) {
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
void RadixSelect::count_band(std::span<const float> values, const Band& band, int bits) {
  const int width = band.width - bits;
  const std::int32_t mask = (1 << bits) - 1;
  counts_.assign(most_bins, 0);
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_bits(value);
    if (band.holds(magnitude)) ++counts_[(magnitude >> width) & mask];
  }
}

/// Drops positions of the band until k are left: the smallest magnitudes, and of equal ones the highest positions.
void RadixSelect::trim(std::span<const float> values, const Band& band, std::size_t k,
                       std::vector<std::uint32_t>& indices) {
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

}  // namespace hearsay

#include "sparsify/search/radix_band.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sparsify/magnitude.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::array<int, 3> split_widths{12, 10, 9};
constexpr std::size_t most_bins = std::size_t{1} << split_widths[0];

/// Neighbouring values often fall into one bin; counting them in turn in separate tables keeps one addition from
/// waiting for the one before.
constexpr std::size_t tables = 4;

}  // namespace

/// Splits until the band holds few values or a single magnitude.
Band RadixBand::find(std::span<const float> values, std::size_t k) {
  Band band{.inside = values.size()};
  const std::size_t few = values.size() / 16;
  for (const int bits : split_widths) {
    if (band.inside <= few) break;
    band = split(values, band, bits, k);
  }
  return band;
}

/// The part of `band` that holds the k-th largest value, one of 2^bits equal parts.
Band RadixBand::split(std::span<const float> values, const Band& band, int bits, std::size_t k) {
  const int width = band.width - bits;
  const std::size_t bins = std::size_t{1} << bits;
  if (band.width == Band{}.width) {
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
  throw std::logic_error("radix band: fewer than k values counted");
}

/// counts_[b] = how many values have the magnitude bits b, without the last `width`.
void RadixBand::count_all(std::span<const float> values, int width) {
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
void RadixBand::count_band(std::span<const float> values, const Band& band, int bits) {
  const int width = band.width - bits;
  const std::int32_t mask = (1 << bits) - 1;
  counts_.assign(most_bins, 0);
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_bits(value);
    if (band.holds(magnitude)) ++counts_[(magnitude >> width) & mask];
  }
}

}  // namespace hearsay

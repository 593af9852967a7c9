#include "sparsify/search/exact_select.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::size_t short_run = 65536;  // values that are not worth a sample
constexpr std::size_t least_sample = 4096, most_sample = 131072, share = 512;

}  // namespace

void ExactSelect::largest(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) {
  require_selectable(k, values.size());
  if (k == 0 || k == values.size()) {
    require_finite(values);
    all_positions(k, indices);
    return;
  }
  gather(values, k, candidates_);
  if (candidates_.keep_largest(k, k).largest >= infinity_bits) require_finite(values);  // throws, with the position
  const auto kept = candidates_.positions();
  indices.assign(kept.begin(), kept.end());
}

void ExactSelect::gather(std::span<const float> values, std::size_t k, Candidates& candidates) {
  const std::size_t n = values.size();
  if (n <= short_run) {
    candidates.collect(values, 0, n);
    return;
  }
  const std::size_t most = most_candidates(k, n);
  if (k <= n / 4) {
    const std::int32_t least = suggestion(values, k);
    if (least == 0 ? candidates.collect_sparse(values, k)
                   : candidates.collect(values, least, most) && candidates.size() >= k)
      return;
  }
  const Band band = radix_.find(values, k);
  candidates.collect(values, band.low, band.above + band.inside);
}

std::size_t ExactSelect::most_candidates(std::size_t k, std::size_t n) {
  return n <= short_run ? n : std::min(n, 8 * k + 1024);
}

std::size_t ExactSelect::sample_size(std::size_t n) { return std::clamp(n / share, least_sample, most_sample); }

std::size_t ExactSelect::sample_position(std::size_t n, std::size_t s) {
  const std::size_t stride = n / sample_size(n);
  return stride * s + scramble(s) % stride;
}

/// A magnitude that at least k values reach with a probability of about 0.9999. Of a sample that would hold q of the k
/// largest on average it really holds Poisson's number of them, so the (q + 4 √q + 4)-th is below the k-th of all.
std::int32_t ExactSelect::suggestion(std::span<const float> values, std::size_t k) {
  const std::size_t n = values.size();
  const std::size_t size = sample_size(n);
  sample_.resize(size);
  for (std::size_t s = 0; s < size; ++s) sample_[s] = magnitude_bits(values[sample_position(n, s)]);
  const double q = static_cast<double>(k) * static_cast<double>(size) / static_cast<double>(n);
  const auto rank = std::min(size, static_cast<std::size_t>(q + 4.0 * std::sqrt(q) + 4.0));
  const auto place = sample_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sample_.begin(), place, sample_.end(), std::greater<>());
  return *place;
}

}  // namespace hearsay

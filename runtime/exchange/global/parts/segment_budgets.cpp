#include "runtime/exchange/global/parts/segment_budgets.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearsay {
namespace {

/// The share of segment s before rounding.
double share(double weight, std::size_t length, double factor) {
  if (length == 0) return 0.0;
  return std::clamp(factor * weight, 1.0, static_cast<double>(length));
}

/// A trace of the length: segments that nobody selected from share what the others cannot take, instead of dividing
/// zero by zero.
std::vector<double> positive(std::span<const float> weights, std::span<const std::size_t> lengths) {
  std::vector<double> made;
  for (std::size_t s = 0; s < weights.size(); ++s)
    made.push_back(static_cast<double>(weights[s]) + 1e-9 * static_cast<double>(lengths[s]));
  return made;
}

/// The largest factor whose shares add up to `total` at most: their sum only rises with it.
double find_factor(std::span<const double> weights, std::span<const std::size_t> lengths, double total) {
  double low = 0.0, high = 0.0;
  for (std::size_t s = 0; s < weights.size(); ++s)
    if (lengths[s] > 0) high = std::max(high, static_cast<double>(lengths[s]) / weights[s]);
  for (int step = 0; step < 100; ++step) {
    const double middle = low + (high - low) / 2;
    double sum = 0.0;
    for (std::size_t s = 0; s < weights.size(); ++s) sum += share(weights[s], lengths[s], middle);
    (sum <= total ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::vector<std::size_t> apportion(std::span<const float> weights, std::span<const std::size_t> lengths,
                                   std::size_t total) {
  const std::vector<double> w = positive(weights, lengths);
  const double factor = find_factor(w, lengths, static_cast<double>(total));
  std::vector<std::size_t> parts(lengths.size()), order(lengths.size());
  std::vector<double> remainders(lengths.size());
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const double exact = share(w[s], lengths[s], factor);
    parts[s] = static_cast<std::size_t>(exact);
    remainders[s] = exact - std::floor(exact);
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  std::size_t given = std::accumulate(parts.begin(), parts.end(), std::size_t{0});
  for (bool moved = true; given < total && moved;) {
    moved = false;
    for (const std::size_t s : order) {
      if (given == total || parts[s] == lengths[s]) continue;
      ++parts[s], ++given;
      moved = true;
    }
  }
  return parts;
}

SegmentBudgets::SegmentBudgets(const Layout& layout, std::size_t dense_below)
    : layout_(layout), counts_(layout.count(), 0.0F) {
  for (const Segment& s : layout.segments()) {
    budgets_.push_back(s.length);
    lengths_.push_back(s.length < dense_below ? 0 : s.length);
    competing_ += lengths_.back();
  }
}

void SegmentBudgets::count(std::span<const std::uint32_t> positions) {
  auto from = positions.begin();
  for (SegmentId s = 0; s < layout_.count(); ++s) {
    const auto to = std::lower_bound(from, positions.end(), layout_[s].offset + layout_[s].length);
    counts_[s] = static_cast<float>(to - from);
    from = to;
  }
}

void SegmentBudgets::share_out(std::size_t total) {
  const std::vector<std::size_t> parts = apportion(counts_, lengths_, total);
  for (SegmentId s = 0; s < layout_.count(); ++s)
    if (lengths_[s] > 0) budgets_[s] = parts[s];
}

}  // namespace hearsay

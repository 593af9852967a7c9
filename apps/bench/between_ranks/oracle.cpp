#include "apps/bench/between_ranks/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random.hpp"

namespace hearsay {
namespace {

/// k of n, ascending; the draws are those of the smaller of the two sets, chosen or left out.
std::vector<std::uint32_t> random_positions(Random& random, std::size_t n, std::size_t k) {
  if (2 * k > n) {
    const auto left_out = random_positions(random, n, n - k);
    std::vector<std::uint32_t> all(n), chosen;
    std::iota(all.begin(), all.end(), 0U);
    std::ranges::set_difference(all, left_out, std::back_inserter(chosen));
    return chosen;
  }
  std::vector<std::uint32_t> chosen;
  while (chosen.size() < k) {
    for (std::size_t missing = k - chosen.size(); missing > 0; --missing)
      chosen.push_back(static_cast<std::uint32_t>(random.below(n)));
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }
  return chosen;
}

[[noreturn]] void wrong(std::string_view algorithm, int rank, const std::string& what) {
  throw std::logic_error("the result of " + std::string(algorithm) + " on rank " + std::to_string(rank) +
                         " is wrong: " + what);
}

std::string entry_text(const SparseVector& v, std::size_t at) {
  if (at >= v.size()) return "missing";
  return std::to_string(v.values[at]) + " at position " + std::to_string(v.indices[at]);
}

/// Where two vectors part, in words; empty if they are equal.
std::string first_difference(const SparseVector& got, const SparseVector& expected) {
  if (got == expected) return "";
  const std::size_t common = std::min(got.size(), expected.size());
  std::size_t i = 0;
  while (i < common && got.indices[i] == expected.indices[i] && got.values[i] == expected.values[i]) ++i;
  return "entry " + std::to_string(i) + " is " + entry_text(got, i) + ", not " + entry_text(expected, i);
}

}  // namespace

SparseVector normal_entries(std::uint64_t seed, int rank, std::size_t m, std::size_t k) {
  Random random(stream_seed(seed, "bench normal entries", static_cast<std::uint64_t>(rank)));
  SparseVector v{.indices = random_positions(random, m, k), .values = {}};
  for (std::size_t i = 0; i < k; ++i) {
    const auto value = static_cast<float>(random.normal());
    v.values.push_back(value == 0.0F ? 1.0F : value);  // canonical form has no zeros
  }
  return v;
}

SparseVector whole_entries(std::uint64_t seed, int rank, std::size_t m, std::size_t k) {
  constexpr std::uint64_t largest = 4096;
  Random random(stream_seed(seed, "bench whole entries", static_cast<std::uint64_t>(rank)));
  const std::size_t shared = std::min(m, 2 * k);
  SparseVector v{.indices = random_positions(random, shared, k), .values = {}};
  for (std::uint32_t& index : v.indices) index = static_cast<std::uint32_t>(index * (m / shared));
  for (std::size_t i = 0; i < k; ++i) {
    const auto magnitude = static_cast<float>(1 + random.below(largest));
    v.values.push_back(random.below(2) == 0 ? magnitude : -magnitude);
  }
  return v;
}

SparseVector exact_sum(std::span<const SparseVector> vectors) {
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (const SparseVector& v : vectors) {
    for (std::size_t i = 0; i < v.size(); ++i) entries.emplace_back(v.indices[i], v.values[i]);
  }
  std::ranges::sort(entries);
  SparseVector total;
  for (std::size_t i = 0; i < entries.size();) {
    const std::uint32_t index = entries[i].first;
    float value = 0.0F;
    for (; i < entries.size() && entries[i].first == index; ++i) value += entries[i].second;
    if (value != 0.0F) total.push_back(index, value);
  }
  return total;
}

SparseVector exact_largest(const SparseVector& all, std::size_t k) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable: equal magnitudes stay in the order of their positions.
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return std::abs(all.values[i]); });
  order.resize(std::min(k, order.size()));
  std::ranges::sort(order);
  SparseVector largest;
  for (const std::size_t i : order) largest.push_back(all.indices[i], all.values[i]);
  return largest;
}

void require_dense(std::string_view algorithm, int rank, std::span<const float> got, const SparseVector& expected) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool has_entry = next < expected.size() && expected.indices[next] == i;
    const float value = has_entry ? expected.values[next++] : 0.0F;
    if (got[i] != value)
      wrong(algorithm, rank,
            "value " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " + std::to_string(value));
  }
  if (next != expected.size()) wrong(algorithm, rank, std::to_string(got.size()) + " values are too few");
}

void require_sparse(std::string_view algorithm, int rank, const SparseVector& got, const SparseVector& expected) {
  const std::string difference = first_difference(got, expected);
  if (!difference.empty()) wrong(algorithm, rank, difference);
}

void require_truncated(std::string_view algorithm, const TruncatedSums& got,
                       std::span<const SparseVector> contributions, std::size_t k) {
  const SparseVector& result = got.results.front();
  if (result.size() > k) wrong(algorithm, 0, std::to_string(result.size()) + " entries, not " + std::to_string(k));
  for (std::size_t rank = 1; rank < got.results.size(); ++rank) {
    const std::string difference = first_difference(got.results[rank], result);
    if (!difference.empty()) wrong(algorithm, static_cast<int>(rank), "unlike on rank 0, " + difference);
  }
  std::vector<SparseVector> parts = got.returned;
  parts.push_back(result);
  const SparseVector total = exact_sum(contributions);
  const std::string difference = first_difference(exact_sum(parts), total);
  if (!difference.empty())
    throw std::logic_error("the result of " + std::string(algorithm) +
                           " and what all ranks' residuals take back are not the sum of what they gave: " + difference);
  if (got.results.size() == 2) require_sparse(algorithm, 0, result, exact_largest(total, k));
}

}  // namespace hearsay

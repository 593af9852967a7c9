#pragma once
// Values to select from, by kind, and the definition of the largest of them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay::test {

using Indices = std::vector<std::uint32_t>;

inline std::unique_ptr<Selector> make_selector(const std::string& yaml) {
  Config config = Config::from_text(yaml);
  auto selector = chosen_entry(selectors(), config, "dense", "which values travel").make(config);
  config.document().throw_if_invalid();
  return selector;
}
inline std::unique_ptr<Selector> make_selector(const SelectorEntry& entry) {
  return make_selector("name: " + std::string(entry.name));
}

inline Indices selected(Selector& selector, std::span<const float> values, std::size_t k) {
  Indices indices{42};  // what was there before must go
  selector.select(values, k, indices);
  return indices;
}

inline bool ascending(std::span<const std::uint32_t> indices) {
  return std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
}

/// The definition: sort all positions by magnitude, stably, and keep the first k.
inline Indices largest(std::span<const float> values, std::size_t k) {
  Indices order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

inline std::vector<float> normal_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

/// Few different magnitudes: nearly everything is a tie.
inline std::vector<float> tied_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random.below(7)) - 3);
  return values;
}

/// All within [1, 1 + 2^−`bits`]: one bin of a histogram over leading bits holds them all.
inline std::vector<float> nearly_equal_values(std::uint64_t seed, std::size_t n, int bits) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values)
    value = static_cast<float>((1.0 + std::ldexp(random.uniform(), -bits)) * (random.below(2) == 0 ? 1.0 : -1.0));
  return values;
}

/// Any finite bit pattern: denormals, both zeros, huge values.
inline std::vector<float> any_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32)));
    if (!std::isfinite(value)) value = random.below(2) == 0 ? 0.0F : -0.0F;
  }
  return values;
}

/// ±1, …, ±n in any order: no two of like magnitude.
inline std::vector<float> distinct_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i + 1) * (random.below(2) == 0 ? 1.0F : -1.0F);
  random.shuffle(std::span(values));
  return values;
}

/// k different positions below n, ascending; `clustered` ones lie close together.
inline Indices random_positions(std::uint64_t seed, std::size_t k, std::size_t n, bool clustered = false) {
  Random random(seed);
  Indices all(n);
  std::iota(all.begin(), all.end(), 0U);
  if (clustered) {
    const std::size_t room = std::min(n, 2 * k);
    const auto first = static_cast<std::uint32_t>(random.below(n - room + 1));
    all.resize(room);
    std::iota(all.begin(), all.end(), first);
  }
  random.shuffle(std::span(all));
  all.resize(k);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace hearsay::test

#include "sparsify/carried_select.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sparsify/magnitude.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::size_t block = 64;  // values that are added and compared while they are in registers and L1
constexpr double least_room = 1.3, most_room = 16.0, relax = 0.98;
constexpr float noise = 1.05F;  // growth of the k-th value that says nothing
constexpr float fastest_growth = 2.0F;

using AddAndCollect = void(std::span<float> values, std::span<const float> addend, float scale, std::int32_t low,
                           std::vector<std::uint32_t>& candidates);

/// values ← values + scale · addend, and the positions of magnitudes ≥ `low`. Blocks without any are the rule.
/// Inlined into functions for different processors, each of which makes vector code of it.
[[gnu::always_inline]] inline void add_and_collect(std::span<float> values, std::span<const float> addend, float scale,
                                                   std::int32_t low, std::vector<std::uint32_t>& candidates) {
  const std::size_t n = values.size();
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t end = std::min(n, first + block);
    float* v = values.data() + first;
    const float* a = addend.data() + first;
    std::int32_t hits = 0;
    if (end - first == block) {  // a constant length, so that both loops become vector code; unrolled: 10 % faster
#pragma GCC unroll 8
      for (std::size_t i = 0; i < block; ++i) v[i] += scale * a[i];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < block; ++i) hits += magnitude_bits(v[i]) >= low ? 1 : 0;
    } else {
      for (std::size_t i = 0; i < end - first; ++i) v[i] += scale * a[i];
      hits = 1;
    }
    if (hits == 0) continue;
    for (std::size_t i = first; i < end; ++i)
      if (magnitude_bits(values[i]) >= low) candidates.push_back(static_cast<std::uint32_t>(i));
  }
}

void portable(std::span<float> values, std::span<const float> addend, float scale, std::int32_t low,
              std::vector<std::uint32_t>& candidates) {
  add_and_collect(values, addend, scale, low, candidates);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void with_avx2(std::span<float> values, std::span<const float> addend, float scale,
                                       std::int32_t low, std::vector<std::uint32_t>& candidates) {
  add_and_collect(values, addend, scale, low, candidates);
}

// Chosen at run time by hand: the linker's way (ifunc) runs before ThreadSanitizer does.
AddAndCollect* for_this_processor() { return __builtin_cpu_supports("avx2") != 0 ? with_avx2 : portable; }
#else
AddAndCollect* for_this_processor() { return portable; }
#endif

void add(std::span<float> values, std::span<const float> addend, float scale) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * addend[i];
}

}  // namespace

void CarriedSelect::add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                                   std::vector<std::uint32_t>& indices) {
  Memory& memory = memories_[values.data()];
  const bool aimed = memory.level > 0.0F && memory.k == k;
  candidates_.clear();
  if (aimed) {
    for_this_processor()(values, addend, scale, magnitude_bits(memory.level), candidates_);
  } else {
    add(values, addend, scale);
  }
  const bool hit = candidates_.size() >= k && candidates_.size() <= values.size() / 2;
  if (aimed) memory.room = hit ? std::max(least_room, relax * memory.room) : std::min(most_room, 2.0 * memory.room);
  const auto wanted = std::min(values.size(), static_cast<std::size_t>(memory.room * static_cast<double>(k)) + 16);
  if (!aimed || !hit) select_.largest(values, wanted, candidates_);
  gather(values);
  select_.largest(candidate_values_, k, kept_);
  indices.resize(k);
  for (std::size_t i = 0; i < k; ++i) indices[i] = candidates_[kept_[i]];
  remember(memory, k, wanted);
}

/// candidate_values_ ← the values at candidates_.
void CarriedSelect::gather(std::span<const float> values) {
  candidate_values_.resize(candidates_.size());
  bool finite = true;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    candidate_values_[c] = values[candidates_[c]];
    finite = finite && std::isfinite(candidate_values_[c]);
  }
  if (!finite) require_finite(values);  // throws, with the position
}

/// The level that `wanted` candidates reach, a steady growth of the k-th value allowed for.
void CarriedSelect::remember(Memory& memory, std::size_t k, std::size_t wanted) {
  const float before = std::exchange(memory.kth, 0.0F);
  memory.level = 0.0F;
  memory.k = k;
  if (k == 0 || candidates_.size() <= k) return;
  magnitudes_.clear();
  for (const float value : candidate_values_) magnitudes_.push_back(std::abs(value));
  const auto nth = [&](std::size_t n) {
    const auto place = magnitudes_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(magnitudes_.begin(), place, magnitudes_.end(), std::greater<>());
    return *place;
  };
  const float level = nth(std::min(wanted, magnitudes_.size()));
  memory.kth = nth(k);
  const float growth = before > 0.0F ? memory.kth / before : 1.0F;
  memory.level = growth > noise ? std::min(growth, fastest_growth) * level : level;
}

}  // namespace hearsay

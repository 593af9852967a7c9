// The two loops under every mixing rule.
// Cost: mix_row reads deg + 1 blocks and writes one in a single sweep for up to 4 neighbours, and in sweeps of 4 beyond:
// 2 passes more for each.
#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/algorithms/neighbour/mixing/mixing.hpp"

namespace hearsay {
namespace {

constexpr std::size_t most_together = 4;  // streams that the processor's prefetchers follow without losing one

constexpr std::size_t line = 16;         // values of a cache line
constexpr std::size_t lead = 48 * line;  // 3 kB: the processor's own prefetchers stop at the end of a page of 4 kB

/// Asks for what is needed soon, in the second-level cache. Past the end of a block it asks for nothing that exists, which
/// does nothing.
[[gnu::always_inline]] inline void load_ahead(const float* now) { __builtin_prefetch(now + lead, 0, 2); }

/// x ← w x + Σ w_j x̂_j for `Count` neighbours, added in their order. Inlined into functions for different processors,
/// each of which makes vector code of it; no fused multiply-add, so all give the same bits.
template <std::size_t Count>
[[gnu::always_inline]] inline void mix_together(float self_weight, const MixEdge* edges, std::span<float> x) {
  std::array<const float*, Count> theirs{};
  std::array<float, Count> weights{};
  for (std::size_t j = 0; j < Count; ++j) theirs[j] = edges[j].theirs.data(), weights[j] = edges[j].weight;
  float* const own = x.data();
  const auto mix_values = [&](std::size_t begin, std::size_t end) __attribute__((always_inline)) {
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) {
      float mixed = self_weight * own[i];
#pragma GCC unroll 4
      for (std::size_t j = 0; j < Count; ++j) mixed += weights[j] * theirs[j][i];
      own[i] = mixed;
    }
  };
  const std::size_t whole = x.size() / line * line;
  for (std::size_t i = 0; i < whole; i += line) {
    load_ahead(own + i);
    for (std::size_t j = 0; j < Count; ++j) load_ahead(theirs[j] + i);
    mix_values(i, i + line);
  }
  mix_values(whole, x.size());
}

[[gnu::always_inline]] inline void mix_some(float self_weight, std::span<const MixEdge> edges, std::span<float> x) {
  switch (edges.size()) {
    case 0:
      return mix_together<0>(self_weight, edges.data(), x);
    case 1:
      return mix_together<1>(self_weight, edges.data(), x);
    case 2:
      return mix_together<2>(self_weight, edges.data(), x);
    case 3:
      return mix_together<3>(self_weight, edges.data(), x);
    default:
      return mix_together<4>(self_weight, edges.data(), x);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void with_avx2(float self_weight, std::span<const MixEdge> edges, std::span<float> x) {
  mix_some(self_weight, edges, x);
}
#endif

void portable(float self_weight, std::span<const MixEdge> edges, std::span<float> x) {
  mix_some(self_weight, edges, x);
}

}  // namespace

void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) {
#if defined(__x86_64__)
  const auto mix = __builtin_cpu_supports("avx2") != 0 ? with_avx2 : portable;
#else
  const auto mix = portable;
#endif
  std::size_t done = std::min(edges.size(), most_together);
  mix(self_weight, edges.first(done), x);
  for (; done < edges.size(); done += most_together)
    mix(1.0F, edges.subspan(done, std::min(edges.size() - done, most_together)), x);
}

void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += weight * (theirs[i] - ours[i]);
}

}  // namespace hearsay

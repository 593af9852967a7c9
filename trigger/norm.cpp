// ‖x‖₂ = sqrt(Σ x_i²).
//
// The square of a float is exact in double (24 + 24 significant bits ≤ 53), so a fused multiply-add gives the same bits
// as multiply and add, and only the order of the additions matters. It is fixed: lane j sums the values whose position
// is j modulo 16, then the lanes are added pairwise. Sixteen independent lanes let the compiler vectorise without being
// allowed to reorder (no -ffast-math), and keep the adders busy.
// No overflow: 2³² values of 3.4e38 have a sum of squares of 5e86.
// Cost: n reads, 2n flops in double.
#include <array>
#include <cmath>
#include <cstddef>

#include "base/loops/read_ahead.hpp"
#include "trigger/trigger.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearsay {
namespace {

constexpr std::size_t lanes = 16;
static_assert(lanes == cache_line);

using Lanes = std::array<double, lanes>;

/// sum[j] for the first multiple of 16 values.
Lanes portable(std::span<const float> x) {
  Lanes sum{};
  for (std::size_t i = 0; i < x.size(); i += lanes) {
    read_ahead(x.data() + i);
    for (std::size_t j = 0; j < lanes; ++j) {
      const double value = x[i + j];
      sum[j] += value * value;
    }
  }
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] Lanes with_avx2(std::span<const float> x) {
  __m256d sum[lanes / 4] = {};
  for (std::size_t i = 0; i < x.size(); i += lanes) {
    read_ahead(x.data() + i);
#pragma GCC unroll 4  // else the sums live in memory
    for (std::size_t v = 0; v < lanes / 4; ++v) {
      const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(x.data() + i + 4 * v));
      sum[v] = _mm256_fmadd_pd(value, value, sum[v]);
    }
  }
  Lanes all;
  for (std::size_t v = 0; v < lanes / 4; ++v) _mm256_storeu_pd(all.data() + 4 * v, sum[v]);
  return all;
}
#endif

Lanes sums_of_squares(std::span<const float> x) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return with_avx2(x);
#endif
  return portable(x);
}

}  // namespace

double norm(std::span<const float> x) {
  const std::size_t whole = x.size() - x.size() % lanes;
  Lanes sum = sums_of_squares(x.first(whole));
  for (std::size_t i = whole; i < x.size(); ++i) {
    const double value = x[i];
    sum[i - whole] += value * value;
  }
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) sum[j] += sum[j + width];
  }
  return std::sqrt(sum[0]);
}

}  // namespace hearsay

// ‖x‖₂ = sqrt(Σ x_i²), and ‖x − y‖₂ with the differences taken in float.
//
// The square of a float is exact in double (24 + 24 significant bits ≤ 53), so a fused multiply-add gives the same bits
// as multiply and add, and only the order of the additions matters. It is fixed: lane j sums the values whose position
// is j modulo 16, then the lanes are added pairwise. Sixteen independent lanes let the compiler vectorise without being
// allowed to reorder (no -ffast-math), and keep the adders busy.
// No overflow: 2³² values of 3.4e38 have a sum of squares of 5e86.
// Cost: n reads and 2n flops in double; of a difference 2n reads, and n flops in float more.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/loops/read_ahead.hpp"
#include "base/loops/vector_code.hpp"
#include "trigger/trigger.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearsay {
namespace {

constexpr std::size_t lanes = 16;
static_assert(lanes == cache_line);

using Lanes = std::array<double, lanes>;

/// x_i.
struct Values {
  const float* x;

  void ask_ahead(std::size_t i) const { read_ahead(x + i); }
  float at(std::size_t i) const { return x[i]; }
#if defined(__x86_64__)
  __m128 four(std::size_t i) const { return _mm_loadu_ps(x + i); }
#endif
};

/// x_i − y_i.
struct Differences {
  const float* x;
  const float* y;

  void ask_ahead(std::size_t i) const {
    read_ahead(x + i);
    read_ahead(y + i);
  }
  float at(std::size_t i) const { return x[i] - y[i]; }
#if defined(__x86_64__)
  __m128 four(std::size_t i) const { return _mm_sub_ps(_mm_loadu_ps(x + i), _mm_loadu_ps(y + i)); }
#endif
};

/// sum[j] for the first `whole` values, a multiple of 16.
template <class Source>
Lanes portable(Source values, std::size_t whole) {
  Lanes sum{};
  for (std::size_t i = 0; i < whole; i += lanes) {
    values.ask_ahead(i);
    for (std::size_t j = 0; j < lanes; ++j) {
      const double value = values.at(i + j);
      sum[j] += value * value;
    }
  }
  return sum;
}

#if defined(__x86_64__)
template <class Source>
[[gnu::target("avx2,fma")]] Lanes with_avx2(Source values, std::size_t whole) {
  __m256d sum[lanes / 4] = {};
  for (std::size_t i = 0; i < whole; i += lanes) {
    values.ask_ahead(i);
#pragma GCC unroll 4  // else the sums live in memory
    for (std::size_t v = 0; v < lanes / 4; ++v) {
      const __m256d value = _mm256_cvtps_pd(values.four(i + 4 * v));
      sum[v] = _mm256_fmadd_pd(value, value, sum[v]);
    }
  }
  Lanes all;
  for (std::size_t v = 0; v < lanes / 4; ++v) _mm256_storeu_pd(all.data() + 4 * v, sum[v]);
  return all;
}
#endif

template <class Source>
Lanes sums_of_squares(Source values, std::size_t whole) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return with_avx2(values, whole);
#endif
  return portable(values, whole);
}

template <class Source>
double root_of_squares(Source values, std::size_t n) {
  const std::size_t whole = n - n % lanes;
  Lanes sum = sums_of_squares(values, whole);
  for (std::size_t i = whole; i < n; ++i) {
    const double value = values.at(i);
    sum[i - whole] += value * value;
  }
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) sum[j] += sum[j + width];
  }
  return std::sqrt(sum[0]);
}

}  // namespace

double norm(std::span<const float> x) { return root_of_squares(Values{x.data()}, x.size()); }

double norm_of_difference(std::span<const float> x, std::span<const float> y) {
  return root_of_squares(Differences{x.data(), y.data()}, x.size());
}

// Magnitudes as integers: NaN stands above ∞, and this above all else.
double largest_difference(std::span<const float> x, std::span<const float> y) {
  return std::bit_cast<float>(in_vector_code([=]() __attribute__((always_inline)) {
    std::int32_t most = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      most = std::max(most, std::bit_cast<std::int32_t>(x[i] - y[i]) & 0x7fffffff);
    return most;
  }));
}

}  // namespace hearsay

// The floors: what memory lets through to one thread. With AVX2 where there is, lest arithmetic be what is measured.
#include <algorithm>
#include <cstring>

#include "apps/bench/kernels/data.hpp"
#include "apps/bench/kernels/suite.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay {
namespace {

/// n reads and n writes. A pass is half of it.
void copy(benchmark::State& state, std::size_t n) {
  FloatBlock from(n), to(n);
  std::ranges::fill(from.span(), 1.0F);
  for (auto _ : state) {
    std::memcpy(to.span().data(), from.span().data(), n * sizeof(float));
    benchmark::DoNotOptimize(to.span().data());
    benchmark::ClobberMemory();
  }
}

/// max |x|.
[[gnu::always_inline]] inline std::int32_t largest_magnitude(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return largest;
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] std::int32_t with_avx2(std::span<const float> values) { return largest_magnitude(values); }
#endif
std::int32_t portable(std::span<const float> values) { return largest_magnitude(values); }

/// n reads.
void read(benchmark::State& state, std::size_t n) {
  const FloatBlock values = gradient_like(1, n);
#if defined(__x86_64__)
  const auto pass = __builtin_cpu_supports("avx2") != 0 ? with_avx2 : portable;
#else
  const auto pass = portable;
#endif
  for (auto _ : state) benchmark::DoNotOptimize(pass(values.span()));
}

/// r ← r + g: 2n reads and n writes, what error feedback costs whatever is sent.
void add(benchmark::State& state, std::size_t n) {
  GradientSource gradients(n);
  FloatBlock block(n);
  const auto residual = block.span();
  for (auto _ : state) {
    const auto g = gradients.next();
    for (std::size_t i = 0; i < n; ++i) residual[i] += g[i];
    benchmark::DoNotOptimize(residual.data());
    benchmark::ClobberMemory();
  }
}

}  // namespace

void add_passes(std::vector<Kernel>& kernels, std::size_t most_values) {
  const auto add_pass = [&](const char* name, auto work, std::size_t n) {
    kernels.push_back({.name = name + short_number(static_cast<double>(n)),
                       .work = [work, n](benchmark::State& state) { work(state, n); },
                       .bytes = sizeof(float) * static_cast<double>(n)});
  };
  add_pass("copy/", copy, 100'000);
  add_pass("read/", read, 11'173'962);
  for (const std::size_t n : block_lengths(most_values)) {
    add_pass("read/", read, n);
    add_pass("add/", add, n);
    if (n > 25'000'000) continue;
    add_pass("copy/", copy, 3 * n / 2);
    if (5 * n / 2 != 25'000'000) add_pass("copy/", copy, 5 * n / 2);
  }
  add_pass("copy/", copy, 25'000'000);
}

}  // namespace hearsay

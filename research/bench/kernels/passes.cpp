// The floors: what memory lets through to one thread. With AVX2 where there is, lest arithmetic be what is measured,
// and reading ahead, as the kernels do.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/loops/read_ahead.hpp"
#include "base/loops/vector_code.hpp"
#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/reads.hpp"
#include "research/bench/kernels/suite.hpp"

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

/// n reads.
void read(benchmark::State& state, std::size_t n) {
  const FloatBlock values = gradient_like(1, n);
  const std::array block{values.span().data()};
  for (auto _ : state) benchmark::DoNotOptimize(largest_magnitude(block, n));
}

/// r ← r + g in vectors as wide as the compiler's target lets it.
[[gnu::always_inline]] inline void sum_in_lines(std::span<float> r, const float* g) {
  const std::size_t whole = r.size() / cache_line * cache_line;
  for (std::size_t i = 0; i < whole; i += cache_line) {
    read_ahead(r.data() + i);
    read_ahead(g + i);
    for (std::size_t l = i; l < i + cache_line; ++l) r[l] += g[l];
  }
  for (std::size_t i = whole; i < r.size(); ++i) r[i] += g[i];
}
void sum(std::span<float> r, const float* g) {
  in_vector_code([=]() __attribute__((always_inline)) { sum_in_lines(r, g); });
}

/// r ← r + g: 2n reads and n writes, what error feedback costs whatever is sent.
void add(benchmark::State& state, std::size_t n) {
  GradientSource gradients(n);
  FloatBlock block(n);
  const auto residual = block.span();
  for (auto _ : state) {
    const auto g = gradients.next();
    sum(residual, g.data());
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

#pragma once
// Repeatable random numbers: one independent stream per (seed, purpose, index), the same on every machine.
// The generator is the standard's mt19937_64, whose output is fixed; the standard's distributions are not, so the
// three that are needed stand here.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <string_view>
#include <utility>

namespace hearsay {

/// SplitMix64's finaliser (Steele et al. 2014): a bijection that spreads every input bit over all output bits.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A seed for the stream `purpose`, number `index`, of a run with the seed `seed`.
constexpr std::uint64_t stream_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return scramble(scramble(seed ^ hash) + index);
}

/// 64 random bits below this, a multiple of n, give an integer below n without bias.
constexpr std::uint64_t usable_below(std::uint64_t n) { return n * (UINT64_MAX / n); }

/// Uniform, normal and integer draws and shuffles from one stream.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// Uniform in {0, …, n−1}, without bias; n ≥ 1.
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t draw = engine_();
    while (draw >= usable_below(n)) draw = engine_();
    return draw % n;
  }

  /// Standard normal (Box–Muller; one of the pair is thrown away so that draws do not depend on history).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  /// Fisher–Yates.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace hearsay

#include "research/bench/kernels/data.hpp"

#include <cmath>
#include <cstdio>
#include <map>

#include "base/random.hpp"

namespace hearsay {
namespace {

constexpr std::size_t windows = std::size_t{1} << 20;  // places where a window may begin
constexpr std::size_t stretch = 4096;

}  // namespace

std::vector<std::size_t> block_lengths(std::size_t most) {
  std::vector<std::size_t> lengths;
  for (const double n : {1e6, 1e7, 2.5e7, 1.38e8})
    if (n <= static_cast<double>(most)) lengths.push_back(static_cast<std::size_t>(n));
  return lengths;
}

std::string short_number(double x) {
  const int exponent = static_cast<int>(std::floor(std::log10(x)));
  char text[32];
  std::snprintf(text, sizeof text, "%.3ge%d", x / std::pow(10.0, exponent), exponent);
  return text;
}

FloatBlock gradient_like(std::uint64_t seed, std::size_t n) {
  Random random(stream_seed(seed, "gradient-like"));
  FloatBlock block(n);
  double scale = 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % stretch == 0) scale = std::exp(random.normal());
    block.span()[i] = static_cast<float>(scale * random.normal());
  }
  return block;
}

GradientSource::GradientSource(std::size_t n) : n_(n) {
  static std::map<std::size_t, std::weak_ptr<const FloatBlock>> blocks;
  auto& shared = blocks[n];
  noise_ = shared.lock();
  if (!noise_) shared = noise_ = std::make_shared<const FloatBlock>(gradient_like(1, n + windows));
}

std::span<const float> GradientSource::next() {
  const std::size_t offset = scramble(++calls_) % windows;
  return noise_->span().subspan(offset, n_);
}

}  // namespace hearsay

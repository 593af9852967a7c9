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

#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

constexpr std::size_t lanes = 16;

}  // namespace

double norm(std::span<const float> x) {
  std::array<double, lanes> sum{};
  const std::size_t whole = x.size() - x.size() % lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) {
      const double value = x[i + j];
      sum[j] += value * value;
    }
  }
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

#include "runtime/exchange/global/parts/block_dct.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <Eigen/Core>

namespace hearsay {
namespace {

using Coefficients = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using CoefficientsView = Eigen::Map<const Coefficients>;
using Strided = Eigen::Map<Coefficients, 0, Eigen::OuterStride<>>;
using StridedView = Eigen::Map<const Coefficients, 0, Eigen::OuterStride<>>;

std::size_t largest_divisor(std::size_t n, std::size_t most) {
  for (std::size_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

std::vector<float> cosine_matrix(std::size_t side) {
  std::vector<float> c(side * side);
  const auto s = static_cast<double>(side);
  for (std::size_t k = 0; k < side; ++k)
    for (std::size_t i = 0; i < side; ++i)
      c[k * side + i] =
          static_cast<float>(std::sqrt((k > 0 ? 2.0 : 1.0) / s) *
                             std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) * static_cast<double>(k) / s));
  return c;
}

Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }

CoefficientsView square(const std::vector<float>& values, std::size_t side) {
  return {values.data(), index(side), index(side)};
}

}  // namespace

BlockDct::BlockDct(const Layout& layout, std::size_t side) : cosines_(side + 1) {
  for (const Segment& segment : layout.segments()) {
    if (segment.length == 0) continue;
    Tensor tensor{.offset = segment.offset, .rows = 1, .columns = segment.length};
    if (segment.shape.size() > 1) {
      tensor.rows = static_cast<std::size_t>(segment.shape.front());
      tensor.columns = segment.length / tensor.rows;
    }
    tensor.height = largest_divisor(tensor.rows, side);
    tensor.width = largest_divisor(tensor.columns, side);
    for (const std::size_t used : {tensor.height, tensor.width})
      if (cosines_[used].empty()) cosines_[used] = cosine_matrix(used);
    const std::size_t values = tensor.height * tensor.width;
    for (std::size_t block = 0; block < segment.length / values; ++block)
      blocks_.append(segment.name, {static_cast<std::int64_t>(values)});
    tensors_.push_back(tensor);
  }
}

void BlockDct::transform(std::span<const float> x, std::span<float> coefficients) const {
  for (const Tensor& t : tensors_) {
    const CoefficientsView left = square(cosines(t.height), t.height), right = square(cosines(t.width), t.width);
    float* to = coefficients.data() + t.offset;
    for (std::size_t row = 0; row < t.rows; row += t.height) {
      for (std::size_t column = 0; column < t.columns; column += t.width) {
        const StridedView from(x.data() + t.offset + row * t.columns + column, index(t.height), index(t.width),
                               Eigen::OuterStride<>(index(t.columns)));
        Eigen::Map<Coefficients>(to, index(t.height), index(t.width)).noalias() =
            Coefficients(left * from) * right.transpose();
        to += t.height * t.width;
      }
    }
  }
}

void BlockDct::invert(std::span<const float> coefficients, std::span<float> x) const {
  for (const Tensor& t : tensors_) {
    const CoefficientsView left = square(cosines(t.height), t.height), right = square(cosines(t.width), t.width);
    const float* from = coefficients.data() + t.offset;
    for (std::size_t row = 0; row < t.rows; row += t.height) {
      for (std::size_t column = 0; column < t.columns; column += t.width) {
        Strided to(x.data() + t.offset + row * t.columns + column, index(t.height), index(t.width),
                   Eigen::OuterStride<>(index(t.columns)));
        to.noalias() = Coefficients(left.transpose() * CoefficientsView(from, index(t.height), index(t.width))) * right;
        from += t.height * t.width;
      }
    }
  }
}

}  // namespace hearsay

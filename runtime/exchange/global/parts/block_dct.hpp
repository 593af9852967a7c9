#pragma once
// The cosine transform of a model's tensors, block by block: what is smooth within a block becomes a few large values.
//   c = C_a X C_bᵀ,   X = C_aᵀ c C_b,   C_s[k][i] = √((1 + [k > 0]) / s) cos(π (i + ½) k / s)
// DCT-II of Ahmed, Natarajan and Rao (ahmed1974discrete), scaled so that C Cᵀ = 1. A tensor is a matrix of its first
// dimension by the rest, one of one dimension a row. Blocks are a × b, the largest divisors of its sides that are no
// larger than `side`.
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/replica/layout.hpp"

namespace hearsay {

class BlockDct {
 public:
  BlockDct(const Layout& layout, std::size_t side);

  /// A segment for every block: block after block, row after row within each, every tensor's in its own slice.
  const Layout& blocks() const { return blocks_; }
  /// Both n floats, not the same memory. 2 (a + b) floating-point operations a value.
  void transform(std::span<const float> x, std::span<float> coefficients) const;
  void invert(std::span<const float> coefficients, std::span<float> x) const;

 private:
  struct Tensor {
    std::size_t offset = 0, rows = 0, columns = 0;
    std::size_t height = 0, width = 0;  ///< of its blocks
  };
  const std::vector<float>& cosines(std::size_t side) const { return cosines_[side]; }

  std::vector<Tensor> tensors_;
  std::vector<std::vector<float>> cosines_;  // C by its size; empty where no block has it
  Layout blocks_;
};

}  // namespace hearsay

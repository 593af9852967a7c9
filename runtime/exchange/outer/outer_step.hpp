#pragma once
// What algorithms with local steps share. A round, on rank i:
//   H local steps         the loop's own optimizer takes x_i away from φ_i, where the round began
//   outer difference      D_i = φ_i − x_i
//   who is asked          all ranks, a pair, the neighbours, whoever has fired: their D or x, and a mean of them
//   outer optimizer       φ_i ← φ_i − η (D + μ m)
//   the next round        x_i ← φ_i
// The inner optimizer is the loop's: its state stays local and is not reset. A round ends in `stepped(k)` where k + 1
// is a multiple of H.
#include <cstddef>
#include <optional>
#include <span>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// `exchange.local_steps` and the section `exchange.outer`.
struct OuterOptions {
  Iteration local_steps = 50;  ///< H
  double learning_rate = 0.7;  ///< η
  double momentum = 0.9;       ///< μ

  /// Whether a round ends with iteration k.
  bool round_ends(Iteration k) const { return (k + 1) % local_steps == 0; }
  /// Whether the outer step goes to the mean of those asked and keeps nothing: then it keeps the mean of the models.
  bool plain() const { return learning_rate == 1.0 && momentum == 0.0; }
};
OuterOptions read_outer(Config& exchange, const OuterOptions& usual);
/// The section alone, of algorithms that count no local steps.
OuterOptions read_outer_step(Config& exchange, const OuterOptions& usual);

/// An iteration's share of a round that costs `round` and, beside it, moves so many floats in memory.
ExchangeCost of_an_iteration(const ExchangeCost& round, Iteration local_steps, double moved_floats);

/// The outer optimizer, over a block of n floats or slices of it.
class OuterOptimizer {
 public:
  enum class Form {
    nesterov,    ///< m ← μ m + D;  φ ← φ − η (D + μ m), as PyTorch's SGD(nesterov=True)
    heavy_ball,  ///< m ← μ m + D;  φ ← φ − η m
  };
  OuterOptimizer(const OuterOptions& options, Form form, std::size_t values);
  /// `difference` and `phi` are the slices of the block that begin at `offset`.
  void step(std::span<const float> difference, std::size_t offset, std::span<float> phi);
  void state(Archive& archive);
  /// Bytes of m.
  static std::size_t bytes(const OuterOptions& options, std::size_t values) {
    return options.momentum > 0.0 ? values * sizeof(float) : 0;
  }

 private:
  const float learning_rate_, momentum_;
  const Form form_;
  FloatBlock m_;  // empty without momentum
};

/// Throws DivergenceError, naming the segment, unless all of these values, which begin at `offset` of the block, are
/// finite. To be asked before they go to other ranks.
void require_finite_difference(const Layout& layout, std::size_t offset, std::span<const float> values);

}  // namespace hearsay

#pragma once
// Draws from a symmetric Dirichlet distribution, the same on every machine.
#include <cstddef>
#include <vector>

#include "base/random.hpp"

namespace hearsay {

/// n non-negative numbers with sum 1, ~ Dirichlet(α, …, α); 10⁻⁶ ≤ α ≤ 10⁶. Exact to rounding: tiny α do
/// not underflow, since the gamma draws are kept as logarithms.
std::vector<double> dirichlet(double alpha, std::size_t n, Random& random);

/// log of a draw from Gamma(shape α, scale 1), α > 0.
double log_gamma_draw(double alpha, Random& random);

}  // namespace hearsay

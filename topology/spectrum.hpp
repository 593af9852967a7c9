#pragma once
// What the eigenvalues of large sparse matrices are asked for.
#include <functional>
#include <span>

#include "topology/topology.hpp"

namespace hearsay {

/// The outermost eigenvalues of a symmetric matrix on differences, that is on vectors without a mean.
struct Ends {
  double least, most;
};

/// A symmetric matrix that keeps vectors without a mean so, and is known by what it does.
struct Operator {
  int size;
  double bound;                                                               ///< on the magnitude of its eigenvalues
  std::function<void(std::span<const double> x, std::span<double> y)> apply;  ///< y ← A x
};

/// Lanczos's iteration, to about 1e-14 · bound; repeatable to the last bit. size ≥ 2. Some `size` calls of `apply`
/// where the outermost eigenvalues lie close to others (a path), some tens where they do not.
Ends lanczos(const Operator& matrix);

/// The ends of a symmetric matrix whose rows have equal sums, W or a Laplacian, of size ≥ 2.
Ends ends_on_differences(const MixingMatrix& matrix);

}  // namespace hearsay

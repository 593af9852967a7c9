// Eigenvalues of W by Eigen's symmetric solver: Householder tridiagonalisation and implicit QR, O(P³), about 2 s for
// P = 1024.
#include <algorithm>
#include <cmath>

#include <Eigen/Eigenvalues>

#include "topology/topology.hpp"

namespace hearsay {

Spectrum spectrum(const MixingMatrix& matrix) {
  const int size = matrix.size();
  if (size == 1) return {.second = 0.0, .smallest = 0.0, .contraction = 0.0, .gap = 1.0};
  Eigen::MatrixXd dense(size, size);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) dense(i, j) = matrix(i, j);
  const Eigen::VectorXd eigenvalues =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(dense, Eigen::EigenvaluesOnly).eigenvalues();  // ascending
  // The largest is 1, the eigenvalue of the mean: w_ij ≥ 0 off the diagonal makes I − W positive semidefinite.
  const double second = eigenvalues(size - 2);
  const double smallest = eigenvalues(0);
  const double contraction = std::max(std::abs(second), std::abs(smallest));
  return {.second = second, .smallest = smallest, .contraction = contraction, .gap = 1.0 - contraction};
}

}  // namespace hearsay

// Eigenvalues of W by Eigen's symmetric solver: Householder tridiagonalisation and implicit QR, O(P³), about 2 s for
// P = 1024.
#include <algorithm>
#include <cmath>

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

#include "topology/topology.hpp"

namespace hearsay {

namespace {

/// W − `shift` in every entry.
Eigen::MatrixXd dense(const MixingMatrix& matrix, double shift) {
  Eigen::MatrixXd dense(matrix.size(), matrix.size());
  for (int i = 0; i < matrix.size(); ++i)
    for (int j = 0; j < matrix.size(); ++j) dense(i, j) = matrix(i, j) - shift;
  return dense;
}

}  // namespace

Spectrum spectrum(const MixingMatrix& matrix) {
  const int size = matrix.size();
  if (size == 1) return {.second = 0.0, .smallest = 0.0, .contraction = 0.0, .gap = 1.0};
  const Eigen::VectorXd eigenvalues =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(dense(matrix, 0.0), Eigen::EigenvaluesOnly)
          .eigenvalues();  // ascending
  // The largest is 1, the eigenvalue of the mean: w_ij ≥ 0 off the diagonal makes I − W positive semidefinite.
  const double second = eigenvalues(size - 2);
  const double smallest = eigenvalues(0);
  const double contraction = std::max(std::abs(second), std::abs(smallest));
  return {.second = second, .smallest = smallest, .contraction = contraction, .gap = 1.0 - contraction};
}

Spectrum product_spectrum(const MixingMatrix& product) {
  const int size = product.size();
  // Without the mean, whose singular value 1 becomes the 0 at the end.
  const Eigen::VectorXd values = Eigen::BDCSVD<Eigen::MatrixXd>(dense(product, 1.0 / size)).singularValues();
  const double contraction = values(0);
  return {.second = contraction, .smallest = values(size - 2), .contraction = contraction, .gap = 1.0 - contraction};
}

}  // namespace hearsay

// Eigenvalues of W, of the Laplacian and of a period's product: all of them by Eigen's dense solvers up to 256 ranks,
// O(P³), a tenth of a second; above, the outermost two by Lanczos's iteration, O(edges) a step. Of a directed
// graph of so many ranks the largest magnitude by powers of W, roughly: 32 P passes over the edges.
#include "topology/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include <Eigen/Eigenvalues>

#include "base/random.hpp"

namespace hearsay {
namespace {

constexpr int most_dense = 256;
constexpr double rounding = 1e-14;

using Vector = Eigen::VectorXd;

std::size_t length_of(const Vector& x) { return static_cast<std::size_t>(x.size()); }
void remove_mean(Vector& x) { x.array() -= x.mean(); }

Vector random_differences(int size) {
  Random random(stream_seed(0, "lanczos", static_cast<std::uint64_t>(size)));
  Vector x(size);
  for (double& value : x) value = random.normal();
  remove_mean(x);
  return x.normalized();
}

/// What Lanczos's iteration makes of a matrix.
struct Tridiagonal {
  std::vector<double> diagonal, beside;

  /// How many eigenvalues are below x: the negative pivots of T − x I (Sturm).
  std::size_t below(double x) const {
    std::size_t count = 0;
    double pivot = 1.0;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      pivot = diagonal[i] - x - (i == 0 ? 0.0 : beside[i - 1] * beside[i - 1] / pivot);
      if (pivot == 0.0) pivot = std::numeric_limits<double>::min();
      count += pivot < 0.0 ? 1 : 0;
    }
    return count;
  }
  /// Eigenvalue number `index`, ascending, which lies within ±bound.
  double eigenvalue(std::size_t index, double bound) const {
    double low = -bound, high = bound;
    for (int halving = 0; halving < 64; ++halving) {
      const double middle = std::midpoint(low, high);
      (below(middle) > index ? high : low) = middle;
    }
    return std::midpoint(low, high);
  }
  Ends ends(double bound) const { return {eigenvalue(0, bound), eigenvalue(diagonal.size() - 1, bound)}; }
};

Eigen::MatrixXd dense(const MixingMatrix& matrix) {
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(matrix.size(), matrix.size());
  for (int i = 0; i < matrix.size(); ++i)
    for (const auto& [j, value] : matrix.row(i)) dense(i, j) = value;
  return dense;
}

double sum_of_row(const MixingMatrix& matrix, int i) {
  double sum = 0.0;
  for (const auto& weight : matrix.row(i)) sum += weight.value;
  return sum;
}

Ends dense_ends(const MixingMatrix& matrix) {
  const Vector eigenvalues =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(dense(matrix), Eigen::EigenvaluesOnly).eigenvalues();  // ascending
  std::vector<double> others(eigenvalues.begin(), eigenvalues.end());
  const double of_mean = sum_of_row(matrix, 0);
  others.erase(std::ranges::min_element(others, {}, [&](double value) { return std::abs(value - of_mean); }));
  return {others.front(), others.back()};
}

Operator sparse(const MixingMatrix& matrix) {
  double bound = 0.0;  // Gershgorin's
  for (int i = 0; i < matrix.size(); ++i) {
    double sum = 0.0;
    for (const auto& weight : matrix.row(i)) sum += std::abs(weight.value);
    bound = std::max(bound, sum);
  }
  return {matrix.size(), bound, [&matrix](std::span<const double> x, std::span<double> y) {
            for (int i = 0; i < matrix.size(); ++i) {
              double sum = 0.0;
              for (const auto& [j, value] : matrix.row(i)) sum += value * x[static_cast<std::size_t>(j)];
              y[static_cast<std::size_t>(i)] = sum;
            }
          }};
}

/// AᵀA of a period's product A.
Operator squared(std::span<const GraphPhase> phases, double weight) {
  const auto size = phases[0].size();
  return {static_cast<int>(size), 1.0, [=, z = std::vector<double>(size)](auto x, auto y) mutable {
            std::ranges::copy(x, y.begin());
            for (const GraphPhase& phase : phases) {
              for (std::size_t from = 0; from < size; ++from)
                z[static_cast<std::size_t>(phase[from])] =
                    (1.0 - weight) * y[static_cast<std::size_t>(phase[from])] + weight * y[from];
              std::ranges::copy(z, y.begin());
            }
            for (std::size_t t = phases.size(); t-- > 0;) {
              for (std::size_t from = 0; from < size; ++from)
                z[from] = (1.0 - weight) * y[from] + weight * y[static_cast<std::size_t>(phases[t][from])];
              std::ranges::copy(z, y.begin());
            }
          }};
}

/// Singular values on differences, of W_{τ−1} ⋯ W_0 written out.
Ends dense_singular_values(std::span<const GraphPhase> phases, double weight) {
  const auto size = static_cast<Eigen::Index>(phases[0].size());
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(size, size);
  for (const GraphPhase& phase : phases) {
    const Eigen::MatrixXd before = product;
    for (std::size_t from = 0; from < phase.size(); ++from)
      product.row(phase[from]) =
          (1.0 - weight) * before.row(phase[from]) + weight * before.row(static_cast<Eigen::Index>(from));
  }
  product.array() -= 1.0 / static_cast<double>(size);  // the mean, whose singular value 1 becomes the 0 at the end
  // ±σ are the eigenvalues of [0 A; Aᵀ 0]. Eigen's own singular values would take twice as long to compile as all else
  // here.
  Eigen::MatrixXd both = Eigen::MatrixXd::Zero(2 * size, 2 * size);
  both.topRightCorner(size, size) = product;
  both.bottomLeftCorner(size, size) = product.transpose();
  const Vector values = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(both, Eigen::EigenvaluesOnly).eigenvalues();
  return {.least = std::max(0.0, values(size + 1)), .most = values(2 * size - 1)};  // ascending
}

/// Magnitudes of all eigenvalues of a column-stochastic matrix but the 1.
Ends dense_magnitudes(const MixingMatrix& shares) {
  const auto eigenvalues = Eigen::EigenSolver<Eigen::MatrixXd>(dense(shares), false).eigenvalues();
  std::vector<std::complex<double>> others(eigenvalues.begin(), eigenvalues.end());
  others.erase(std::ranges::min_element(others, {}, [](const auto& value) { return std::abs(value - 1.0); }));
  const auto magnitude = [](const auto& value) { return std::abs(value); };
  return {.least = std::abs(*std::ranges::min_element(others, {}, magnitude)),
          .most = std::abs(*std::ranges::max_element(others, {}, magnitude))};
}

/// How fast powers of W shrink differences, which stay differences: the mean over the second half of them.
double shrinking_by_powers(const MixingMatrix& shares) {
  const Operator w = sparse(shares);
  const int half = 16 * w.size;
  Vector x = random_differences(w.size), y(w.size);
  double logarithms = 0.0;
  for (int power = 0; power < 2 * half; ++power) {
    w.apply({x.data(), length_of(x)}, {y.data(), length_of(y)});
    remove_mean(y);
    if (y.norm() < std::numeric_limits<double>::min()) return 0.0;
    if (power >= half) logarithms += std::log(y.norm());
    x = y.normalized();
  }
  return std::exp(logarithms / half);
}

/// σ of σ², which has an error of `rounding`.
double root(double square) { return square < rounding * rounding ? 0.0 : std::sqrt(square); }

Spectrum spectrum_of(const Ends& ends) {
  const double contraction = std::max(std::abs(ends.most), std::abs(ends.least));
  return {.second = ends.most, .smallest = ends.least, .contraction = contraction, .gap = 1.0 - contraction};
}

}  // namespace

// The vectors are not made orthogonal again. Rounding then brings copies of eigenvalues that have been found into T,
// which leaves the outermost ones what they are (Paige, 1972), and no more than two vectors are kept.
Ends lanczos(const Operator& matrix) {
  // Once an eigenvalue is found, rounding may move it a little for ever.
  const auto most_steps = static_cast<std::size_t>(4 * matrix.size);
  const double nothing = rounding * matrix.bound;
  Vector before = Vector::Zero(matrix.size), x = random_differences(matrix.size), y(matrix.size);
  Tridiagonal t;
  Ends found{.least = matrix.bound, .most = -matrix.bound};
  for (std::size_t look = 32;;) {
    matrix.apply({x.data(), length_of(x)}, {y.data(), length_of(y)});
    t.diagonal.push_back(x.dot(y));
    y -= t.diagonal.back() * x + (t.beside.empty() ? 0.0 : t.beside.back()) * before;
    remove_mean(y);  // which rounding brings back: left alone, it would grow to an eigenvalue of its own
    const double length = y.norm();
    const bool complete = length <= nothing;  // all that the first vector has a part of has been found
    if (complete || t.diagonal.size() == look) {
      const Ends now = t.ends(matrix.bound + nothing);
      const bool settled = found.least - now.least <= nothing && now.most - found.most <= nothing;
      if (complete || settled || look > most_steps) return now;
      found = now;
      look += look / 2;
    }
    t.beside.push_back(length);
    before = x;
    x = y / length;
  }
}

Ends ends_on_differences(const MixingMatrix& matrix) {
  return matrix.size() <= most_dense ? dense_ends(matrix) : lanczos(sparse(matrix));
}

Spectrum spectrum(const MixingMatrix& matrix) {
  return spectrum_of(matrix.size() == 1 ? Ends{0.0, 0.0} : ends_on_differences(matrix));
}

Spectrum product_spectrum(std::span<const GraphPhase> phases, double weight) {
  if (phases[0].size() <= most_dense) return spectrum_of(dense_singular_values(phases, weight));
  const Ends squares = lanczos(squared(phases, weight));
  return spectrum_of({.least = root(squares.least), .most = root(squares.most)});
}

Spectrum share_spectrum(const MixingMatrix& shares) {
  if (shares.size() == 1) return spectrum_of({0.0, 0.0});
  if (shares.size() <= most_dense) return spectrum_of(dense_magnitudes(shares));
  return spectrum_of({.least = 0.0, .most = shrinking_by_powers(shares)});
}

}  // namespace hearsay

#pragma once
// Columns of numbers, shifted and scaled to mean 0 and deviation 1.
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace hearsay {

/// Whether a float holds it, which is what a target is learnt as; inputs are scaled first.
inline bool fits_float(double number) { return std::abs(number) <= double{std::numeric_limits<float>::max()}; }

/// Mean and variance of every column, row by row, by Welford's update (1962): the sum of squares less the square of the
/// sum has no digit left where the mean is large beside the deviation.
class Moments {
 public:
  explicit Moments(std::size_t columns) : columns_(columns) {}

  /// The number of the next row in a column; columns are added to on their own.
  void add(std::size_t column, double value);

 private:
  friend class Scaling;
  struct Column {
    std::size_t rows = 0;
    long double mean = 0.0L, squares = 0.0L;  // of the distances to the mean; 1e300² is a number here
  };
  std::vector<Column> columns_;
};

/// (value − mean)/deviation. A column that does not change is only shifted.
class Scaling {
 public:
  /// Leaves so many columns as they are.
  explicit Scaling(std::size_t columns) : columns_(columns) {}
  explicit Scaling(const Moments& moments);

  float operator()(std::size_t column, double value) const;

 private:
  struct Column {
    long double mean = 0.0L, deviation = 1.0L;
  };
  std::vector<Column> columns_;
};

}  // namespace hearsay

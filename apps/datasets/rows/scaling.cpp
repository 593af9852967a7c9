#include "apps/datasets/rows/scaling.hpp"

#include <cmath>

namespace hearsay {

void Moments::add(std::size_t column, double value) {
  Column& of = columns_[column];
  const long double before = value - of.mean;
  of.mean += before / static_cast<long double>(++of.rows);
  of.squares += before * (value - of.mean);
}

Scaling::Scaling(const Moments& moments) {
  // What is less, as a part of the mean, is rounding. Doubles near m are 1.1e-16 to 2.2e-16 of m apart, and one number
  // that was computed in several ways differs by a few of these steps. For times in nanoseconds it is 2 microseconds.
  constexpr long double least = 1e-15L;
  for (const Moments::Column& of : moments.columns_) {
    const long double deviation = of.rows == 0 ? 0.0L : std::sqrt(of.squares / static_cast<long double>(of.rows));
    const bool changes = deviation > least * std::abs(of.mean) && deviation > 0.0L;
    columns_.push_back({of.mean, changes ? deviation : 1.0L});
  }
}

float Scaling::operator()(std::size_t column, double value) const {
  const Column& of = columns_[column];
  return static_cast<float>((value - of.mean) / of.deviation);
}

}  // namespace hearsay

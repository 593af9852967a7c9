#pragma once
// How the digits are written: pen strokes through control points, several styles a digit.
#include <array>
#include <vector>

namespace hearsay {

/// A point of the unit square, x to the right, y downwards.
struct StrokePoint {
  double x, y;
};

/// One pen stroke: straight from point to point, or a Catmull–Rom spline through the points.
struct Stroke {
  bool smooth;
  std::vector<StrokePoint> points;  ///< at least two
};

/// One way to write a digit.
using DigitStyle = std::vector<Stroke>;

/// The styles of the digits 0 to 9, two or three each.
std::array<std::vector<DigitStyle>, 10> digit_styles();

/// The corners of the polyline that draws a stroke: the points themselves, or `per_span` pieces between two points of
/// a uniform Catmull–Rom spline (Catmull & Rom 1974), whose end tangents point at the neighbouring control point.
std::vector<StrokePoint> flatten(const Stroke& stroke, int per_span);

}  // namespace hearsay

#include "apps/datasets/digit_strokes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hearsay {
namespace {

using Styles = std::vector<DigitStyle>;

Stroke lines(std::vector<StrokePoint> points) { return {false, std::move(points)}; }
Stroke curve(std::vector<StrokePoint> points) { return {true, std::move(points)}; }

Styles zero() {
  return {
      {curve({{.5, 0}, {.78, .14}, {.85, .5}, {.78, .86}, {.5, 1}, {.22, .86}, {.15, .5}, {.22, .14}, {.5, 0}})},
      {curve({{.55, 0}, {.72, .2}, {.72, .8}, {.5, 1}, {.3, .8}, {.3, .2}, {.55, 0}})},
      {curve({{.62, .06}, {.35, .04}, {.17, .35}, {.2, .8}, {.48, 1}, {.8, .8}, {.82, .35}, {.6, .02}, {.45, .1}})}};
}

Styles one() {
  return {{lines({{.5, 0}, {.5, 1}})},
          {lines({{.28, .25}, {.55, 0}, {.55, 1}})},
          {lines({{.3, .2}, {.52, 0}, {.52, 1}}), lines({{.28, 1}, {.78, 1}})}};
}

Styles two() {
  return {{curve({{.2, .26}, {.3, .06}, {.58, 0}, {.8, .2}, {.66, .52}, {.2, 1}}), lines({{.2, 1}, {.85, 1}})},
          {curve({{.2, .2}, {.5, 0}, {.78, .2}, {.6, .6}, {.3, .94}, {.15, .86}, {.3, .76}, {.55, .92}, {.86, .96}})},
          {curve({{.18, .1}, {.55, .02}, {.76, .25}, {.5, .65}, {.16, .98}}), lines({{.16, .98}, {.8, .95}})}};
}

Styles three() {
  return {{curve({{.2, .1}, {.5, 0}, {.77, .2}, {.64, .42}, {.4, .48}}),
           curve({{.4, .48}, {.72, .55}, {.82, .78}, {.55, 1}, {.18, .9}})},
          {lines({{.2, 0}, {.78, 0}, {.45, .42}}), curve({{.45, .42}, {.76, .52}, {.8, .78}, {.52, 1}, {.18, .92}})},
          {curve({{.22, .05}, {.62, .04}, {.7, .28}, {.4, .46}, {.75, .62}, {.72, .92}, {.25, 1}})}};
}

Styles four() {
  return {{lines({{.32, 0}, {.18, .55}, {.86, .55}}), lines({{.68, .2}, {.66, 1}})},
          {lines({{.65, 1}, {.65, 0}, {.15, .66}, {.86, .66}})},
          {curve({{.22, .02}, {.2, .35}, {.38, .5}, {.7, .44}}), lines({{.76, 0}, {.7, 1}})}};
}

Styles five() {
  return {{lines({{.8, 0}, {.28, 0}, {.24, .45}}), curve({{.24, .45}, {.55, .38}, {.82, .64}, {.62, .96}, {.18, .95}})},
          {curve({{.78, .04}, {.35, .05}, {.25, .38}, {.6, .45}, {.8, .7}, {.55, 1}, {.18, .9}})},
          {curve({{.34, .05}, {.28, .42}, {.66, .44}, {.8, .74}, {.5, 1}, {.2, .92}}), lines({{.34, .05}, {.8, .02}})}};
}

Styles six() {
  return {{curve({{.7, 0}, {.36, .3}, {.2, .68}, {.4, 1}, {.7, .92}, {.78, .68}, {.55, .52}, {.24, .7}})},
          {curve({{.58, 0}, {.3, .45}, {.22, .76}, {.46, 1}, {.76, .84}, {.68, .58}, {.42, .55}, {.24, .76}})},
          {curve({{.8, .08}, {.5, .04}, {.22, .4}, {.24, .86}, {.54, 1}, {.78, .78}, {.58, .54}, {.24, .6}})}};
}

Styles seven() {
  return {{lines({{.15, 0}, {.85, 0}, {.4, 1}})},
          {lines({{.18, 0}, {.84, 0}, {.42, 1}}), lines({{.34, .5}, {.78, .5}})},
          {lines({{.16, .16}, {.16, 0}, {.84, .02}}), curve({{.84, .02}, {.58, .45}, {.5, 1}})}};
}

Styles eight() {
  return {{curve({{.5, .47}, {.75, .22}, {.5, 0}, {.25, .22}, {.5, .47}, {.8, .76}, {.5, 1}, {.2, .76}, {.5, .47}})},
          {curve({{.5, 0}, {.74, .2}, {.5, .45}, {.26, .2}, {.5, 0}}),
           curve({{.5, .45}, {.8, .72}, {.5, 1}, {.2, .72}, {.5, .45}})},
          {curve({{.76, .1}, {.4, .02}, {.3, .3}, {.7, .62}, {.66, .96}, {.3, .94}, {.3, .62}, {.68, .3}, {.76, .1}})}};
}

Styles nine() {
  return {{curve({{.76, .2}, {.5, 0}, {.22, .24}, {.44, .5}, {.74, .36}, {.76, .2}}), lines({{.77, .1}, {.72, 1}})},
          {curve({{.76, .28}, {.54, .5}, {.24, .32}, {.45, .02}, {.75, .14}, {.78, .5}, {.64, .86}, {.34, 1}})},
          {curve({{.74, .06}, {.36, .04}, {.22, .3}, {.46, .5}, {.7, .3}, {.74, .06}}), lines({{.74, .06}, {.5, 1}})}};
}

StrokePoint spline(const StrokePoint& before, const StrokePoint& from, const StrokePoint& to, const StrokePoint& after,
                   double t) {
  const auto blend = [t](double a, double b, double c, double d) {
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
  };
  return {blend(before.x, from.x, to.x, after.x), blend(before.y, from.y, to.y, after.y)};
}

}  // namespace

std::array<std::vector<DigitStyle>, 10> digit_styles() {
  return {zero(), one(), two(), three(), four(), five(), six(), seven(), eight(), nine()};
}

std::vector<StrokePoint> flatten(const Stroke& stroke, int per_span) {
  const auto& p = stroke.points;
  if (!stroke.smooth) return p;
  std::vector<StrokePoint> corners{p.front()};
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    const auto& before = p[i == 0 ? 0 : i - 1];
    const auto& after = p[std::min(i + 2, p.size() - 1)];
    for (int step = 1; step <= per_span; ++step)
      corners.push_back(spline(before, p[i], p[i + 1], after, static_cast<double>(step) / per_span));
  }
  return corners;
}

}  // namespace hearsay

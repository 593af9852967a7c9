// Margins: where the radius of an iteration leaves the unit circle. A scan that ascends, then halvings; so what is
// stable beyond the first unstable step does not count.
#include "runtime/exchange/stability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/exchange/neighbour/linear_iteration.hpp"

namespace hearsay {
namespace {

/// The largest a ≤ limit up to which all are stable.
double margin(double limit, const std::function<bool(double a)>& stable) {
  constexpr int points = 32, halvings = 12;
  double good = 0.0, bad = 0.0;
  for (int i = -2; i <= points && bad == 0.0; ++i) {
    const double a = limit / points * (i > 0 ? i : std::ldexp(1.0, 4 * i - 4));
    (stable(a) ? good : bad) = a;
  }
  if (good == 0.0 || bad == 0.0) return good;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::midpoint(good, bad);
    (stable(middle) ? good : bad) = middle;
  }
  return good;
}

bool inside(double radius) {
  constexpr double rounding = 1e-9;
  return radius < 1.0 - rounding;
}

/// More than any rank alone stands.
double beyond(const LinearIteration& its, const StepResponse& step) {
  const LinearIteration::Tracking tracking = its.tracking.value_or(LinearIteration::Tracking{});
  return 2.1 * (1.0 + step.momentum) / (1.0 - step.dampening) * (1.0 + tracking.momentum) / tracking.gain *
         (1.0 + its.way) / (1.0 - its.way);
}

/// Paces to ask about, ascending.
std::vector<Iteration> paces(const LinearIteration::Pace& pace) {
  constexpr Iteration longest = 64;
  std::vector<Iteration> all;
  for (Iteration p = pace.fewest; p < pace.most.value_or(longest); p *= 2) all.push_back(p);
  all.push_back(pace.most.value_or(longest));
  return all;
}

/// What stands for all that a code does: sends that close too little, or too much.
std::vector<LinearIteration> extremes(const LinearIteration& its) {
  if (its.closes == 1.0) return {its};
  LinearIteration other = its;
  other.closes = 2.0 - its.closes;
  return {its, other};
}

/// Where silences are unlike, one end of an edge moves by a copy that is older than the matrix has it, and v pushes for
/// longer or shorter than it was learnt for. In drawn runs of default EventGraD a few steps that equal silences stand
/// diverge.
Stability::Claim claim_of(const LinearIteration& its) {
  if (its.pace.most != its.pace.fewest) return Stability::Claim::if_equal;
  return its.closes == 1.0 ? Stability::Claim::sharp : Stability::Claim::at_least;
}

double most_step(const LinearIteration& its, const Topology& topology, const StepResponse& step, Iteration pace,
                 double limit) {
  return margin(limit, [&](double a) { return inside(radius(its, topology, step, a, pace)); });
}

/// Iterations in which mixing alone halves a distance.
double halves(const LinearIteration& its, const Topology& topology, const StepResponse& step) {
  if (topology.ranks() == 1) return 0.0;
  const double shrinks = topology.changes() ? std::pow(topology.spectrum().contraction, 1.0 / double(topology.period()))
                                            : radius(its, topology, step, 0.0, its.pace.fewest, false);
  if (shrinks >= 1.0) return std::numeric_limits<double>::infinity();
  return shrinks > 0.0 ? std::log(0.5) / std::log(shrinks) : 0.0;
}

}  // namespace

double most_strength(const LinearIteration& iteration, const Topology& topology) {
  constexpr double longest = 10.0;  // as the configuration allows
  if (topology.ranks() == 1) return longest;
  return margin(longest, [&](double c) {
    LinearIteration its = iteration;
    its.strength = [c](int, int) { return c; };
    return inside(radius(its, topology, {}, 0.0, its.pace.fewest, false));
  });
}

bool never_stable(const LinearIteration& iteration, const Topology& topology) {
  constexpr double short_step = 1e-3;
  return is_known_of(topology) && topology.ranks() > 1 &&
         !inside(radius(iteration, topology, {}, short_step, iteration.pace.fewest));
}

std::optional<Stability> stability_of(const LinearIteration& iteration, const Topology& topology,
                                      const StepResponse& step) {
  if (step.normalised || !is_known_of(topology)) return std::nullopt;
  const std::vector<LinearIteration> each = extremes(iteration);
  const std::vector<Iteration> silences = paces(iteration.pace);
  const double alone =
      margin(beyond(iteration, step), [&](double a) { return inside(radius_alone(iteration, step, a)); });
  Stability its{.alone = alone, .claim = claim_of(iteration)};
  its.most_step = its.alone;
  constexpr double enough = 0.5;
  for (std::size_t p = 0; p < silences.size(); ++p) {
    const double before = its.most_step;
    for (const LinearIteration& one : each)
      its.most_step = std::min(its.most_step, most_step(one, topology, step, silences[p], its.most_step));
    if (p == 0 || its.most_step >= enough * before) continue;
    its.most_step = before;
    its.silence = silences[p - 1];
    break;
  }
  its.halves = halves(iteration, topology, step);
  return its;
}

}  // namespace hearsay

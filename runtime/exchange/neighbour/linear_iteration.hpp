#pragma once
// A neighbour exchange on a quadratic: its iteration is linear, and its matrix says what is stable.
//
// All ranks have the curvature h, and a = ηh. The amplitudes of a value are then, from one iteration to the next,
//   send:    x̂ ← x̂ + q (x − x̂)                      at every T-th iteration; q: what of a gap a send closes
//   mix:     m_i = γ (Σ_j w_ij x̂_j − (1 − w_ii) o_i)  o: x̂ or, `own_values`, x;  x ← x + m;  x̂ of `delay` before
//   learn:   u_i ← u_i + (1 − μ) / (1 − δ) Σ_j c_ij / τ m_ij    u = ηv: drift correction
//   step:    x ← x − d,  d ← μ d + (1 − δ) (a x⁰ − u)   x⁰: where the gradient is taken
// and what trackers and momenta along the models' way have besides (linear_iteration.cpp). Unlike optima shift where it
// rests, and not how it gets there. Where curvatures are unlike, h is the largest, L.
//
// The margin is the largest ηL up to which all eigenvalues of that matrix, of a period, are inside the unit circle
// (stability.cpp). Where ranks keep equal parts of their own and learn at equal c, vectors along an eigenvector of W
// stay along it, so a matrix of a few numbers a side for each λ is enough. Of W the outermost eigenvalues on
// differences are known; between them the matrix is asked at equal distances, since its radius is continuous in λ. Else
// the matrix is of all ranks, up to 16; of more it is asked with the smallest part and the largest c, a guess on the
// safe side.
// Left out: noise, rounding, clipping, and silences that differ from edge to edge.
// Cost: some 40 times the eigenvalues of a matrix of up to 80 a side, a second at worst, before the run.
#include <functional>
#include <optional>
#include <vector>

#include "runtime/exchange/neighbour/link/options.hpp"
#include "runtime/exchange/stability.hpp"
#include "runtime/exchange/step_response.hpp"
#include "topology/topology.hpp"

namespace hearsay {

struct LinearIteration {
  /// y_i, whose sum over ranks is that of u_i ← β u_i + ν g_i, takes the gradient's place.
  struct Tracking {
    double momentum = 0.0;  ///< β
    double gain = 1.0;      ///< ν
  };
  /// How many iterations lie between two sends of a value.
  struct Pace {
    Iteration fewest = 1;
    std::optional<Iteration> most = 1;  ///< nothing: no bound
  };

  Strategy strategy = Strategy::consensus;
  double step = 1.0;        ///< γ
  bool own_values = false;  ///< `stale`: a rank's own term is x and not what others hold of it
  bool by_events = false;   ///< moves only where a value has crossed the edge
  Iteration delay = 0;      ///< of copies
  double closes = 1.0;      ///< q, at least; 2 − q at most
  Pace pace{};
  std::function<double(int i, int j)> strength{};  ///< c of edge {i, j}; empty: no drift correction
  double sends = 1.0;                              ///< that a change needs, in τ
  bool in_step = true;                             ///< v comes off the gradient; else u off x, beside the optimizer
  std::optional<Tracking> tracking{};
  double way = 0.0;  ///< β of a momentum along the way that x goes, mixing included; 0: none
};

/// The radius per iteration on differences or, `with_mean`, on all, at ηL = a with sends every `pace` iterations.
double radius(const LinearIteration& iteration, const Topology& topology, const StepResponse& step, double a,
              Iteration pace, bool with_mean = true);
/// The same of a rank without others.
double radius_alone(const LinearIteration& iteration, const StepResponse& step, double a);
/// Whether `radius` knows such a graph: one with W symmetric, or few ranks.
bool is_known_of(const Topology& topology);

/// The strength c of drift correction from which distances grow however short the steps are, up to 10.
double most_strength(const LinearIteration& iteration, const Topology& topology);
/// Whether distances grow however short steps are, where silences are equal.
bool never_stable(const LinearIteration& iteration, const Topology& topology);
/// Nothing for an optimizer that divides by the size of gradients, and for graphs that are not known.
std::optional<Stability> stability_of(const LinearIteration& iteration, const Topology& topology,
                                      const StepResponse& step);

}  // namespace hearsay

// What linear_iteration.hpp leaves to here: trackers, and momentum along the way.
//   tracker:  z ← z + γ (Σ_j w_ij ŷ_j − (1 − w_ii) ŷ_i),  s ← β s + ν a x⁰,  y = z + s in place of a x⁰;  Σ z = 0
//   way:      a x⁰ + β M in place of a x⁰,  M ← β M + (1 − β) (x before mixing − x after the step);  M = η m̂
// Columns of the matrix are what an iteration makes of unit vectors. Σ u and Σ z stay 0, so of these the last rank's is
// no unknown: with it the matrix would have an eigenvalue of 1 that no run can have in it.
#include "runtime/exchange/neighbour/linear_iteration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <Eigen/Eigenvalues>

namespace hearsay {
namespace {

constexpr int most_rows = 16;  // of a matrix of all ranks

using Values = std::vector<double>;

/// What mixing takes of whom.
struct Row {
  struct Term {
    std::size_t from;
    double weight, learned;  // w_ij and c_ij w_ij
  };
  double leaves = 0.0, learned = 0.0;  // 1 − w_ii and Σ_j c_ij w_ij
  std::vector<Term> terms{};
};

/// A rank each; or one row, in which an eigenvector of W is a rank whose neighbour is itself.
struct Rows {
  std::vector<Row> rows;
  bool sums_to_zero;  // of u and of z
};

Rows along(double lambda, double own, double strength) {
  const double rest = lambda - own, leaves = 1.0 - own;
  return {{{.leaves = leaves, .learned = strength * leaves, .terms = {{0, rest, strength * rest}}}}, lambda == 1.0};
}

/// One amplitude a rank.
struct State {
  explicit State(std::size_t ranks)
      : x(ranks),
        copy(ranks),
        velocity(ranks),
        drift(ranks),
        tracker(ranks),
        tracker_copy(ranks),
        tracked(ranks),
        way(ranks) {}
  Values x, copy;                         // x, x̂
  Values velocity, drift;                 // d, u
  Values tracker, tracker_copy, tracked;  // z, ŷ, s
  Values way;                             // M
};
using Unknown = Values State::*;

class Recursion {
 public:
  Recursion(const LinearIteration& its, const StepResponse& step, double a, Iteration pace)
      : its_(its), step_(step), a_(a), pace_(pace) {
    const double sends = its.sends * static_cast<double>(pace);
    const double tau = std::max(sends, std::max(1.0 + static_cast<double>(its.delay), step.lag()));
    learning_ = its.in_step ? (1.0 - step.momentum) / (1.0 - step.dampening) / tau : 1.0;
  }

  /// Largest magnitude of an eigenvalue, an iteration. `phases`: the rows of a period.
  double radius(std::span<const Rows> phases) const {
    const auto period = std::lcm(pace_, static_cast<Iteration>(phases.size()));
    const std::vector<std::pair<Unknown, std::size_t>> unknowns = unknowns_of(phases[0]);
    const auto side = static_cast<Eigen::Index>(unknowns.size());
    Eigen::MatrixXd matrix(side, side);
    for (Eigen::Index column = 0; column < side; ++column) {
      State state(phases[0].rows.size());
      const auto [unknown, rank] = unknowns[static_cast<std::size_t>(column)];
      (state.*unknown)[rank] = 1.0;
      if (phases[0].sums_to_zero) close_sums(state);
      for (Iteration k = 0; k < period; ++k) iterate(k, phases[static_cast<std::size_t>(k) % phases.size()], state);
      for (Eigen::Index row = 0; row < side; ++row) {
        const auto [made, of] = unknowns[static_cast<std::size_t>(row)];
        matrix(row, column) = (state.*made)[of];
      }
    }
    if (!matrix.allFinite()) return std::numeric_limits<double>::infinity();
    const double largest = Eigen::EigenSolver<Eigen::MatrixXd>(matrix, false).eigenvalues().cwiseAbs().maxCoeff();
    return std::pow(largest, 1.0 / static_cast<double>(period));
  }

 private:
  bool learns() const { return static_cast<bool>(its_.strength); }
  /// What decides the next period, of whom. Where nothing pushes, momenta are not moved by x, and left out.
  std::vector<std::pair<Unknown, std::size_t>> unknowns_of(const Rows& rows) const {
    const bool pushed = a_ > 0.0, old_copies = its_.delay > 0 || its_.closes < 1.0 || (pace_ > 1 && !its_.by_events);
    std::vector<std::pair<Unknown, std::size_t>> all;
    const auto add = [&](bool wanted, Unknown unknown, bool all_but_one = false) {
      const std::size_t count = rows.rows.size() - (all_but_one && rows.sums_to_zero ? 1 : 0);
      for (std::size_t i = 0; wanted && i < count; ++i) all.emplace_back(unknown, i);
    };
    add(true, &State::x);
    add(old_copies, &State::copy);
    add(step_.momentum > 0.0 && (pushed || learns()), &State::velocity);
    add(learns(), &State::drift, true);
    add(its_.tracking.has_value() && pushed, &State::tracker, true);
    add(its_.tracking.has_value() && pushed && old_copies, &State::tracker_copy);
    add(its_.tracking.has_value() && pushed, &State::tracked);
    add(its_.way > 0.0, &State::way);
    return all;
  }
  static void close_sums(State& state) {
    for (Values* values : {&state.drift, &state.tracker})
      values->back() -= std::accumulate(values->begin(), values->end(), 0.0);
  }

  void iterate(Iteration k, const Rows& rows, State& s) const {
    const State before = s;
    if (k % pace_ == 0) send(s);
    const Values& copies = its_.delay > 0 ? before.copy : s.copy;
    const Values& trackers = its_.delay > 0 ? before.tracker_copy : s.tracker_copy;
    const bool moves = !its_.by_events || (k + pace_ - its_.delay % pace_) % pace_ == 0;
    for (std::size_t i = 0; moves && i < s.x.size(); ++i) mix(i, rows.rows[i], copies, trackers, before, s);
    for (std::size_t i = 0; i < s.x.size(); ++i)
      step(i, its_.strategy == Strategy::diffusion ? s.x[i] : before.x[i], before.x[i], s);
  }
  void send(State& s) const {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      s.copy[i] += its_.closes * (s.x[i] - s.copy[i]);
      s.tracker_copy[i] += its_.closes * (s.tracker[i] + s.tracked[i] - s.tracker_copy[i]);
    }
  }
  void mix(std::size_t i, const Row& row, const Values& copies, const Values& trackers, const State& before,
           State& s) const {
    const double own = its_.own_values ? before.x[i] : copies[i];
    double move = -row.leaves * own, learned = -row.learned * own, tracker = -row.leaves * trackers[i];
    for (const Row::Term& term : row.terms) {
      move += term.weight * copies[term.from];
      learned += term.learned * copies[term.from];
      tracker += term.weight * trackers[term.from];
    }
    s.x[i] += its_.step * move;
    if (learns()) s.drift[i] += learning_ * its_.step * learned;
    s.tracker[i] += its_.step * tracker;
  }
  /// `at`: where the gradient is taken.
  void step(std::size_t i, double at, double before, State& s) const {
    double gradient = a_ * at + its_.way * s.way[i];
    if (its_.tracking) {
      s.tracked[i] = its_.tracking->momentum * s.tracked[i] + its_.tracking->gain * gradient;
      gradient = s.tracker[i] + s.tracked[i];
    }
    if (its_.in_step) gradient -= s.drift[i];
    s.velocity[i] = step_.momentum * s.velocity[i] + (1.0 - step_.dampening) * gradient;
    s.x[i] -= step_.nesterov ? gradient + step_.momentum * s.velocity[i] : s.velocity[i];
    if (!its_.in_step) s.x[i] += s.drift[i];
    s.way[i] = its_.way * s.way[i] + (1.0 - its_.way) * (before - s.x[i]);
  }

  const LinearIteration& its_;
  const StepResponse& step_;
  const double a_;
  const Iteration pace_;
  double learning_;  // 1 / τ, η being divided out
};

/// What of the graph the matrices are made of.
class Matrices {
 public:
  Matrices(const LinearIteration& its, const Topology& topology) {
    const auto [least, most] = own_weights(topology);
    const auto [weakest, strongest] = strengths(its, topology);
    const bool alike = most - least < 1e-9 && strongest - weakest < 1e-9 * strongest;
    spread(topology, least, strongest);
    if (topology.changes() || (topology.ranks() <= most_rows && !alike)) all_ranks(its, topology);
  }
  double radius(const Recursion& recursion, bool with_mean) const {
    if (with_mean && !whole_.empty()) return recursion.radius(whole_);
    double largest = 0.0;
    for (const Rows& mode : differences_) largest = std::max(largest, recursion.radius({&mode, 1}));
    return with_mean ? std::max(largest, recursion.radius({&mean_, 1})) : largest;
  }

 private:
  static std::pair<double, double> own_weights(const Topology& topology) {
    std::pair<double, double> ends{1.0, 0.0};
    for (int i = 0; i < topology.ranks(); ++i) {
      const double own = topology.changes() ? 1.0 - topology.phase_weight : topology.matrix(i, i);
      ends = {std::min(ends.first, own), std::max(ends.second, own)};
    }
    return ends;
  }
  static std::pair<double, double> strengths(const LinearIteration& its, const Topology& topology) {
    std::pair<double, double> ends{std::numeric_limits<double>::infinity(), 0.0};
    for (int i = 0; its.strength && i < topology.ranks(); ++i)
      for (const auto& [j, weight] : topology.matrix.row(i))
        if (i != j) ends = {std::min(ends.first, its.strength(i, j)), std::max(ends.second, its.strength(i, j))};
    return ends.second == 0.0 ? std::pair(0.0, 0.0) : ends;
  }
  void spread(const Topology& topology, double own, double strength) {
    constexpr int points = 9;
    mean_ = along(1.0, own, strength);
    if (topology.ranks() == 1) return;
    const auto [second, smallest, contraction, gap] = topology.spectrum();
    for (int i = 0; i < points; ++i)
      differences_.push_back(along(std::lerp(smallest, second, i / (points - 1.0)), own, strength));
  }
  void all_ranks(const LinearIteration& its, const Topology& topology) {
    for (std::int64_t t = 0; t < topology.period(); ++t) {
      const MixingMatrix w = topology.changes()
                                 ? phase_matrix(topology.phases[static_cast<std::size_t>(t)], topology.phase_weight)
                                 : topology.matrix;
      Rows rows{std::vector<Row>(static_cast<std::size_t>(w.size())), true};
      for (int i = 0; i < w.size(); ++i) {
        Row& row = rows.rows[static_cast<std::size_t>(i)];
        row.leaves = 1.0 - w(i, i);
        for (const auto& [j, weight] : w.row(i)) {
          if (i == j) continue;
          const double learned = its.strength ? its.strength(i, j) * weight : 0.0;
          row.terms.push_back({static_cast<std::size_t>(j), weight, learned});
          row.learned += learned;
        }
      }
      whole_.push_back(std::move(rows));
    }
  }

  std::vector<Rows> whole_;        // of a period; empty unless it is asked
  std::vector<Rows> differences_;  // along eigenvectors
  Rows mean_{};
};

}  // namespace

bool is_known_of(const Topology& topology) {
  return !topology.directed() && !topology.everybody && (!topology.changes() || topology.ranks() <= most_rows);
}

double radius(const LinearIteration& iteration, const Topology& topology, const StepResponse& step, double a,
              Iteration pace, bool with_mean) {
  return Matrices(iteration, topology).radius(Recursion(iteration, step, a, pace), with_mean);
}

double radius_alone(const LinearIteration& iteration, const StepResponse& step, double a) {
  LinearIteration lone = iteration;
  lone.delay = 0, lone.closes = 1.0, lone.strength = nullptr;
  const Rows row = along(1.0, 1.0, 0.0);
  return Recursion(lone, step, a, 1).radius({&row, 1});
}

}  // namespace hearsay

#pragma once
// The strength c that drift correction has on an edge where the configuration does not say it: half of what is stable
// (drift.cpp), and 1/2 at most. Closed forms, since c is asked for with every move; a test holds them against the
// matrix of linear_iteration.hpp.
//   c ≤ (2 − s) / s    s = 2 (1 − w_ii): the most that the weights of the edge's ends allow (Gershgorin)
//   c ≤ 1 − a          with a delay of 1, a = γ s: the distance follows z³ − 2 z² + (1 + a + a c / 2) z − a = 0, whose
//                      roots are inside the unit circle if and only if c < 2 (1 − a) (Jury)
// So c ≤ 1 / d with d neighbours of equal weight, and D-PSGD stands at least half of the steps that it stands without.
// By the s of the graph itself, 1.27, c might be 1/2 on an exponential graph of 16; label-sorted MNIST diverges with
// that. Weights that are larger than what a rank keeps (best_constant on a star: −0.2) let Gershgorin allow nothing,
// though s < 2. There c is an eighth of what the graph's own s allows: a distance then falls by 1 − c in an iteration.
#include "topology/topology.hpp"

namespace hearsay {

class EdgeStrength {
 public:
  EdgeStrength(const Topology& topology, int i, int j);
  /// The strength of moves by `step` w_ij, `usual` at most. `delayed`: of copies an iteration old. `growth`: how many
  /// times the usual silence one may last.
  double most(double usual, double step, bool delayed, double growth) const;

 private:
  double leaves_;          // 1 − w_ii of the end that keeps less: both ends come to the same
  double of_graph_ = 0.0;  // s of the graph where that end keeps much less than the edge gives; else 0
};

}  // namespace hearsay

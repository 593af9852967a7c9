// Drift correction: a rank learns how far its own data pull it from the others, and takes that off its gradient.
//   mixing:     x_i ← x_i + Σ_j m_ij                 any rule with m_ji = −m_ij: the mean over ranks stays
//   learning:   v_i ← v_i + Σ_j c / (τ_ij η) m_ij    per segment; v_i = 0 at first
//   gradient:   g_i ← g_i − v_i, then the optimizer
// All v_i add up to 0, so the mean moves by the mean gradient as it would without. Where a run comes to rest, ranks
// agree (m = 0) and g_i = v_i, so Σ g_i = 0: the minimum of the sum of the losses, however different the shares are.
// Without v ranks rest where mixing and their own gradients cancel, which is another point (yuan2018exact).
//
// Family: shi2015extra, tang2018decentralized, yuan2018exact (exact diffusion), alghunaim2024local (with local steps).
// With every segment at every iteration, `difference` with γ = 1/2 and c = 1 this is EXTRA, which mixes while the
// gradient is computed; exact diffusion is the same with the gradient taken after mixing.
// Deviates from the papers in: moves are events of single segments or values, learnt from at the rate at which they
// come; c is free; v is taken off what the optimizer is given, momentum or not.
//
// In lockstep, too, a rule that repeats its moves (`difference`) moves by events here, once for each: v would learn
// from a move of old copies again and again, and with silences of a few iterations that diverges.
//
// τ_ij is how many iterations lie between two moves of the same value along edge {i, j}: the mean of the segment's last
// silences there (an event takes an eighth of the difference), times n_s / (values that cross), times the sends that a
// coarse quantiser needs for a change, at least 1 + delay and the optimizer's lag 1 / (1 − μ). Both ends of an edge
// know the same, so m_ji learns what m_ij does. η is how far a gradient
// moves the segment (gain.hpp), by the highest rate so far: the larger of what both ends say in their headers.
// Why this is stable: between two moves after T iterations v pushes by T η v. Along an eigenvector of W with s = 1 − λ
// the distance of the ranks follows z² − (2 − (1 + r c) s) z + (1 − s) = 0, r = T/τ, whose roots are inside the unit
// circle if and only if r c s < 4 − 2 s. On a ring s ≤ 4/3: c < 1 where silences are equal. Where they are not, r is 1
// on average, which made nothing swing in simulations but models under diffusion on a path of six, by `random` events:
// so no margin is claimed there. The latest silence as τ
// does swing: after every short one v pushes through a long one what it has learnt far too fast.
// Distances along it decay within 2 τ / s iterations, and swing on the way unless r c ≤ s / 4. A run that has few of
// those times, a short one on a thin graph with long silences, ends in the middle of a swing: there less c is worth
// more. What c a run of unknown length wants, ranks cannot know.
// Where the configuration does not say c, strength.hpp does. What steps all of it stands, ../stability.cpp computes.
// Where only one end has fired, c counts by min(1, 2 w_ij / (1 − w_ij)), which is 2 / degree under uniform weights: the
// other end's copy is old, and what has moved that end along its other edges since then the two do not know. The more
// edges it has, the further it is from its copy. With all of c eight ranks on an exponential graph diverge in
// simulations and on MNIST; so they do not.
// Gradients that the optimizer clips move x by less than η says, by the factor s of the clipping: v then learns s times
// as fast, which is never too fast, and comes to rest at the same point. An optimizer that normalises divides s out.
// An alternating edge may have several moves an iteration: τ is at least as many times that. Asynchronously each end
// counts by its own iterations and tells the other τ times the gain; both take the larger product of the two. A slow
// rank's edges then learn by the many steps that a fast one makes between two moves. Three fifths of c count, because
// the pair of copies is older than in lockstep: no simulated pattern of events, delays and speeds diverges then.
// Cost: n floats of memory, one pass over g an iteration, three over what moves, as much again as mixing; no byte.
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/correction/correction.hpp"
#include "runtime/replica/block_state.hpp"

namespace hearsay {
namespace {

/// What counts of c for a move. Both ends of the edge know the same.
double share_of(const MixEdge& edge, SegmentId s) {
  const double w = edge.weight;
  return edge.ends[s] == both_ends || w >= 1.0 ? 1.0 : std::min(1.0, 2.0 * w / (1.0 - w));
}

}  // namespace

DriftCorrection::DriftCorrection(std::optional<double> strength, const ExchangeContext& context,
                                 const Settling& settling, double growth)
    : EdgeListener(context.edges),
      device_(context.device()),
      strength_(strength.value_or(usual_strength)),
      growth_(growth),
      steps_(context.steps),
      layout_(context.replica.layout),
      gain_(steps_, layout_, device_),
      settling_(settling),
      v_(device_.block(layout_.size())),
      rhythms_(context.neighbourhood.neighbours.size(), Rhythm(layout_.count())) {
  for (std::size_t e = 0; e < rhythms_.size(); ++e)
    if (context.edges.begins(e)) DriftCorrection::edge_begins(e);
  if (strength || settling_.alternating) return;
  for (const int j : context.neighbourhood.neighbours)
    allowed_.emplace_back(context.topology, context.neighbourhood.rank, j);
}

void DriftCorrection::state(Archive& archive, Iteration last) {
  last_ = last;
  block_state(archive, "drift", device_, v_.span());
  gain_.state(archive);
  for (Rhythm& rhythm : rhythms_) {
    archive.values("iterations of the last crossing", std::span(rhythm.last));
    for (const Iteration k : rhythm.last)
      if (k < -1) archive.refuse("iterations of the last crossing", "are " + std::to_string(k));
    archive.values("mean silences", std::span(rhythm.mean_silence));
    archive.values("parts that cross", std::span(rhythm.values_a_crossing));
  }
}

void DriftCorrection::rank_lost() { device_.mix_row(0.0F, {}, v_.span()); }

void DriftCorrection::edge_begins(std::size_t edge) {
  rhythms_[edge] = Rhythm(layout_.count());
  std::ranges::fill(rhythms_[edge].last, last_);
}

// Along an alternating edge a value may move more than once an iteration, and v still pushes once: then each move
// counts for a part.
double DriftCorrection::interval(SegmentId s, double silence, double values_a_crossing) const {
  constexpr double shortest = 1.0 / 16.0;
  return std::max(settling_.sends * silence / values_a_crossing,
                  least_interval(s) / std::clamp(silence, shortest, 1.0));
}

// A gain has 8 significant bits: what moves are made of is then learnt exactly, and what i learns of an edge j
// unlearns. While neither end can say how far a gradient moves it, nothing is learnt. A rate may have risen since the
// segment was last sent.
float DriftCorrection::scale(double interval, const MixEdge& edge, SegmentId s, double strength) const {
  constexpr double share_if_alternating = 0.6;
  double reach = double{edge.gains[s]} * interval;
  if (settling_.alternating)
    reach = double{edge.gains[s]} / share_if_alternating;
  else if (!steps_[s].normalised)
    reach = std::max(double{edge.gains[s]}, double{own_gains_[s]}) * interval;
  return reach > 0.0 ? static_cast<float>(steps_[s].sign()) * of_8_bits(strength / reach) : 0.0F;
}

void DriftCorrection::start(Iteration k) {
  const Iteration absent = std::max<Iteration>(0, k - 1 - last_);
  for (Rhythm& rhythm : rhythms_)
    for (Iteration& crossing : rhythm.last) crossing += absent;
  last_ = k;
}

std::span<const float> DriftCorrection::gains(std::size_t edge, Iteration k) {
  own_gains_ = gain_.gains();
  if (!settling_.alternating) return own_gains_;
  const Rhythm& rhythm = rhythms_[edge];
  told_.resize(layout_.count());
  for (SegmentId s = 0; s < layout_.count(); ++s)
    told_[s] = of_8_bits(double{own_gains_[s]} * interval(s, rhythm.with_event(s, k), rhythm.values_a_crossing[s]));
  return told_;
}

/// The c of moves by step · w_ij, at most.
double DriftCorrection::most_of(std::size_t edge, double step) const {
  if (allowed_.empty()) return strength_;
  return allowed_[edge].most(strength_, step, settling_.iterations > 1.0, growth_);
}

void DriftCorrection::learn(Iteration k, const Mixing& mixing, const MixingRule& rule) {
  listen(k, mixing);
  rule.each_move(mixing, [&](const Move& move) {
    const Rhythm& rhythm = rhythms_[move.edge];
    const double tau =
        interval(move.segment, rhythm.mean_silence[move.segment], rhythm.values_a_crossing[move.segment]);
    const MixEdge& edge = mixing.edges[move.edge];
    const double most = most_of(move.edge, double{move.weight} / double{edge.weight});
    const double strength = std::min(most, share_of(edge, move.segment) * strength_);
    add_move(mixing, move, scale(tau, edge, move.segment, strength), v_.span());
  });
}

/// The mean silence if an event ended one now.
double DriftCorrection::Rhythm::with_event(SegmentId s, Iteration k) const {
  constexpr double memory = 8.0;
  return mean_silence[s] + (static_cast<double>(k - last[s]) - mean_silence[s]) / memory;
}

void DriftCorrection::listen(Iteration k, const Mixing& mixing) {
  for (std::size_t e = 0; e < mixing.edges.size(); ++e) {
    const MixEdge& edge = mixing.edges[e];
    Rhythm& rhythm = rhythms_[e];
    for (SegmentId s = 0; s < mixing.layout.count(); ++s) {
      if (mixing.segments[s] == 0 || edge.crossed[s] == nothing) continue;
      rhythm.event(s, k);
      // A selector may have found nothing; then nothing moves either.
      const std::size_t length = mixing.layout[s].length,
                        values =
                            edge.crossed[s] == all_values ? length : std::max<std::size_t>(1, edge.positions[s].size());
      rhythm.values_a_crossing[s] = static_cast<double>(values) / static_cast<double>(length);
    }
  }
}

void DriftCorrection::correct(std::span<float> g) {
  const MixEdge minus_v{.weight = -1.0F, .theirs = v_.span(), .ours = {}};
  device_.mix_row(1.0F, {&minus_v, 1}, g);
  gain_.gradient(g);
}

void CorrectionPlan::require_own_shares(const Topology& topology) const {
  for (std::size_t i = 0; on() && i < static_cast<std::size_t>(topology.ranks()); ++i) {
    const double kept = topology.matrix(i, i);
    if (kept > -1e-9) continue;
    std::ostringstream message;
    message << "exchange.correction: with these topology.weights rank " << i << " keeps " << kept
            << " of its own model, and events of some neighbours alone take it past all of them; a weight of at "
               "least 0 is stable: take topology.weights: metropolis, or exchange.name: dpsgd in lockstep";
    throw ConfigError(message.str());
  }
}

std::function<double(int, int)> CorrectionPlan::strengths(const Topology& topology, double step, bool delayed,
                                                          double growth) const {
  if (strength) return [c = *strength](int, int) { return c; };
  return [&topology, step, delayed, growth](int i, int j) {
    return EdgeStrength(topology, i, j).most(usual_strength, step, delayed, growth);
  };
}

std::vector<std::string> CorrectionPlan::warnings(const Topology& topology, std::optional<double> growth,
                                                  const std::function<double()>& most_strength) const {
  if (!on() || topology.ranks() == 1) return {};
  std::vector<std::string> all;
  if (!growth)
    all.emplace_back(
        "exchange.correction: nothing bounds how long this trigger is silent, and a silence much longer than usual can "
        "make the correction diverge: set trigger.maximum_silence, e.g. 10, or trigger.silence_growth, e.g. 2");
  if (!strength) return all;
  const double most = most_strength() / growth.value_or(1.0);
  if (*strength >= most) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "exchange.correction.strength: %g is unstable: this graph and these events allow less than %.3g in "
                  "theory; take half of that, less for sparse or coarsely rounded copies",
                  *strength, most);
    all.emplace_back(text);
  }
  return all;
}

namespace {

std::unique_ptr<CorrectionPlan> make_drift(Config& config) {
  return std::make_unique<CorrectionPlan>(CorrectionPlan{
      .strength = config.real_or_auto("strength", Range::between(0.0, 10.0),
                                      "c: how fast the drift is learnt; 0 is no correction. auto: 0.5, "
                                      "in lockstep at most what weights and delay allow, 1 / (neighbours "
                                      "of a rank) where these are equal")});
}

}  // namespace

CorrectionEntry drift_correction() {
  return {.name = "drift",
          .summary = "learns from mixing how a rank's own data pull it away, and takes that off its gradient",
          .equation = "x <- x + sum_j m_ij;  v <- v + sum_j c / (tau_ij eta) m_ij;  g <- g - v",
          .cost = "n floats of memory; a pass over g an iteration, 3 over what moves; no byte",
          .citation = "yuan2018exact; shi2015extra; with events Hearsay's own (docs/method/algorithms.md)",
          .make = make_drift};
}

}  // namespace hearsay

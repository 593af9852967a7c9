// D-PSGD: decentralised parallel stochastic gradient descent, the baseline.
//   x_i ← Σ_j w_ij x_j − η g_i(x_i)
// lian2017dpsgd, Algorithm 1; in the form that mixes while the gradient is computed (adapt while communicate), as
// ghosh2021eventgrad's Algorithm A.
// On a graph that changes W is that of iteration k, W_k (ying2021exponential), and only its peer is sent to.
// Deviates from the paper in: nothing in lockstep without `delay`, with which the x_j are those of iteration k − 1.
// Asynchronous ranks use the newest copies that have arrived; with a correction, which needs what i gains of an edge
// to be what j loses, edges alternate (alternating_edges.hpp).
// It runs as eventgrad whose segments always fire, without a trigger and its norms.
// Cost per iteration and directed edge: one message a segment, 4·n bytes of values, 32 + 16·segments bytes of headers;
// memory: one block a neighbour; time: deg + 2 memory passes to mix.
#include "runtime/exchange/neighbour/alternating_edges.hpp"
#include "runtime/exchange/neighbour/eventgrad.hpp"

namespace hearsay {
namespace {

/// The product with a row of W, where drift is learnt of it as differences: what i gains of j, j loses. Half of W where
/// copies are an iteration old: whole, it would overshoot.
std::unique_ptr<MixingRule> rule_for(const LinkOptions& link) {
  constexpr float half = 0.5F;
  if (link.alternating) return make_arrival();
  return link.keep_own_copies ? make_difference(half) : make_stale();
}

std::unique_ptr<ExchangePlan> make_dpsgd(Config& exchange, Config&) {
  EventGradSettings its{.link = read_link_options(exchange)};
  its.link.strategy = read_strategy(exchange, its.link);
  its.correction = read_correction(exchange.section("correction"));
  const bool fresh = its.link.fresh(), corrected = its.correction.on();
  its.link.keep_own_copies = corrected && !fresh;
  its.link.alternating = corrected && !its.link.waits();
  its.link.repeats = !its.link.alternating;
  require_one_in_flight(exchange, its.link);
  its.mixing = rule_for(its.link);
  return eventgrad_plan(
      its, {.follows_phases = fresh && !corrected, .keeps_mass = fresh || corrected, .measures_steps = corrected});
}

}  // namespace

ExchangeEntry dpsgd_exchange() {
  return {.name = "dpsgd",
          .summary = "every rank averages with its neighbours at every iteration: the baseline",
          .equation = "x_i <- sum_j w_ij x_j - eta g_i(x_i)",
          .cost = "per iteration and directed edge: segments messages, 4 n bytes of values; deg + 2 memory passes",
          .citation = "lian2017dpsgd, Algorithm 1",
          .make = make_dpsgd};
}

}  // namespace hearsay

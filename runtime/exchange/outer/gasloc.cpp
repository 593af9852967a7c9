// GASLoC: H local steps, then an outer step whose result mixes with the neighbours' in any graph.
//   local:   x_i moves by the loop's optimizer, H times from φ_i
//   round:   z_i ← φ_i + η (x_i − φ_i);  φ_i ← Σ_j w_ij z_j + μ (z_i − z_i of the round before);  x_i ← φ_i
// gasloc2026gossip: z − α Λ z with Λ = I − W and α = 1, W being that of `topology.weights`. On a graph that changes W
// is that of the round. The mean of the φ_i takes DiLoCo's outer step with Nesterov's momentum, for W keeps the mean
// and μ (z − z before) is the other way to write that momentum.
// Deviates from the paper in: α is a matter of the weights; `overlap` and other choices of `velocity` are
// gossip_outer's. The paper's tables were not at hand: η and μ are those of `noloco`'s code.
// Cost per directed edge and round: one message a segment, 4n bytes of values, 1/H of that an iteration; memory: one
// block a neighbour and three.
#include "runtime/exchange/neighbour/augmented.hpp"
#include "runtime/exchange/outer/gossip.hpp"

namespace hearsay {

ExchangeEntry dpsgd_exchange();

ExchangeEntry gasloc_exchange() {
  return {.name = "gasloc",
          .summary = "H local steps, then an outer step whose result mixes with the neighbours', on any graph",
          .equation =
              "every H iterations: z_i <- phi_i + eta (x_i - phi_i);  phi_i <- sum_j w_ij z_j + mu (z_i - z_i "
              "before);  x_i <- phi_i",
          .cost = "a round and directed edge: segments messages, 4 n bytes of values; three blocks of memory more",
          .citation = "gasloc2026gossip",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            const OuterGossipOptions options =
                read_outer_gossip(exchange, Schedule::lockstep, OuterGossipOptions::Velocity::own);
            read_lockstep(exchange, "; it mixes models of the same round. Leave it at lockstep, or take gossip_outer");
            Config defaults;
            return outer_gossip_plan(options, dpsgd_exchange().make(defaults, defaults));
          }};
}

}  // namespace hearsay

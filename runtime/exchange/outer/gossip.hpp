#pragma once
// Outer steps along a graph: what a round has made of x_i goes through an exchange of the neighbour path, as the
// replica of that exchange. What neighbours hear of, who fires, how it is rounded, how it mixes and what corrects drift
// is that exchange's.
//   take step    D_i = φ_i − x_i − v_i;  z_i ← φ_i − η D_i;  x_i ← z_i               v_i: its drift correction's
//   begin        z_i is the exchange's x: it decides, encodes and posts
//   end          φ_i ← mix(z_i) + μ (u_i − u_i of the round before);  x_i ← φ_i
// All three in stepped(k), as the other outer steps have it: the next gradient is of φ_i. With `overlap`, and where
// ranks are asynchronous and wait for nothing, the round begins in start(k + 1) and ends in finish(k + 1): packets
// travel while a gradient of z_i is computed, which is then applied to φ_i, as dpsgd's do. Between rounds asynchronous
// ranks answer: φ_i mixes with what comes, x_i with it, and what could not go at the round's end goes. Where training
// ends within a round, x_i is φ_i.
// u_i is z_i, or halfway from there to mix(z_i). If mixing is x ← W x and λ an eigenvalue of W, what models differ by
// along its eigenvector falls by √μ a round with the first, by √(μ (1 + λ)/2) with the other, where it swings; neither
// swings up on any graph. With u_i = mix(z_i) it would be √(μ λ), but swing up where λ < −1 / (1 + 2 μ).
// Or momentum is of the differences alone: z_i ← φ_i − η (D_i + μ m_i), m_i ← μ m_i + D_i, and φ_i ← mix(z_i). Then
// what models differ by falls by λ, but what differences differ by is kept for 1 / (1 − μ) rounds.
// Where the ranks' rounds are the same ones, all three move the mean of the φ_i as DiLoCo's step does. Where they are
// not, only the last does: what is under way when u_i is taken is missing from it, and momentum takes that for a step.
// An iteration of that exchange is a round: warm-up, silences, ages, delays and graphs that change count rounds.
#include <memory>

#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {

struct OuterGossipOptions {
  /// What outer momentum goes by.
  enum class Velocity {
    own,          ///< z_i
    halfway,      ///< ½ (z_i + mix(z_i))
    differences,  ///< no iterate: D_i
  };
  OuterOptions outer{};
  Velocity velocity = Velocity::halfway;
  bool overlap = false;  ///< a round ends an iteration after it has begun; true where ranks are asynchronous
};
/// `exchange.local_steps`, `exchange.overlap` and the section `exchange.outer`; `usual` is the default of `velocity`.
/// Asynchronous ranks overlap and have no such key.
OuterGossipOptions read_outer_gossip(Config& exchange, Schedule schedule, OuterGossipOptions::Velocity usual);

/// `exchange` mixes models along the graph and asks nothing of gradients but to correct them.
std::unique_ptr<ExchangePlan> outer_gossip_plan(const OuterGossipOptions& options,
                                                std::unique_ptr<ExchangePlan> exchange);

}  // namespace hearsay

#pragma once
// Outer steps along a graph: what a round has made of x_i goes through an exchange of the neighbour path, as the
// replica of that exchange. What neighbours hear of, who fires, how it is rounded, how it mixes and what corrects drift
// is that exchange's.
//   round's end, in stepped(k):   z_i ← φ_i − η (φ_i − x_i − v_i);  x_i ← z_i         v_i: its drift correction's
//   start(k + 1):                 z_i is the exchange's x: it decides, encodes and posts
//   finish(k + 1):                φ_i ← mix(z_i) + μ (z_i − z_i of the round before);  x_i ← φ_i
// The packets travel while a gradient is computed, as those of dpsgd do: that gradient is of z_i, applied to φ_i.
// An iteration of that exchange is a round: warm-up, silences, ages, delays and graphs that change count rounds.
#include <memory>

#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {

/// `exchange` mixes models along the graph and asks nothing of gradients but to correct them.
std::unique_ptr<ExchangePlan> outer_gossip_plan(const OuterOptions& options, std::unique_ptr<ExchangePlan> exchange);

}  // namespace hearsay

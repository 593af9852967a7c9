// Event-triggered outer steps: H local steps, then of what they have made only the tensors that are news go to the
// neighbours.
//   local:   x_i moves by the loop's optimizer, H times from φ_i
//   round:   z_i ← φ_i + η (x_i − φ_i + v_i);  for every segment s whose trigger fires: send z_s to every neighbour
//            φ_i ← mix(z_i, x̂) + μ (u_i − u_i of the round before);  x_i ← φ_i;  u_i = ½ (z_i + mix(z_i, x̂))
//   asynchronous:  z_i ← φ_i − η (D_i + μ m_i), D_i = φ_i − x_i − v_i, m_i ← μ m_i + D_i;  φ_i ← mix(z_i, x̂)
// Own rule, of eventgrad (ghosh2021eventgrad) and gasloc (gasloc2026gossip): what eventgrad does with x_i at every
// iteration happens to z_i at the end of a round, with its triggers, sparsifiers, mixing rules, drift correction (v)
// and schedules. Mixing must keep the mean (`arrival`, the default, or `difference`): then the mean of the φ_i takes
// DiLoCo's outer step whatever fires and whenever rounds end, for the v_i add up to 0. With every trigger firing and
// `velocity: own`, where u_i is z_i, it is gasloc.
// `warmup_iterations`, `maximum_silence`, `delay` and thresholds that fall with k count rounds. Asynchronous ranks end
// rounds by their own iterations, and training with a whole one. At any iteration they mix with what has come, and send
// what their last round has made as soon as they may (alternating_edges.hpp); x_i moves with φ_i then.
// Cost: eventgrad's, 1/H of it an iteration; memory: eventgrad's, and three blocks.
#include "runtime/exchange/neighbour/eventgrad.hpp"
#include "runtime/exchange/outer/gossip.hpp"

namespace hearsay {

ExchangeEntry gossip_outer_exchange() {
  return {.name = "gossip_outer",
          .summary = "H local steps, then an outer step of which only fired segments travel to the neighbours",
          .equation =
              "every H iterations: z_i <- phi_i + eta (x_i - phi_i);  fired segments of z_i travel;  phi_i <- "
              "mix(z_i, xhat) + mu (u_i - u_i before);  x_i <- phi_i;  u_i = (z_i + mix(z_i, xhat)) / 2",
          .cost = "a round: one read pass for norms; per event and directed edge 4 n_s bytes, or 8 k_s sparse",
          .citation = "ghosh2021eventgrad; gasloc2026gossip",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            using enum OuterGossipOptions::Velocity;
            auto eventgrad = eventgrad_plan(exchange, root);
            const Schedule schedule = eventgrad->schedule();
            const bool waits = schedule == Schedule::lockstep;
            const OuterGossipOptions options = read_outer_gossip(exchange, schedule, waits ? halfway : differences);
            exchange.require(eventgrad->laws().keeps_mass, "mixing",
                             "only with a rule that keeps the mean over ranks, by which the outer step goes: mixing: "
                             "{name: arrival} or {name: difference}");
            const bool mixes_first = waits && eventgrad->moves_at_start();
            exchange.require(!mixes_first, "strategy",
                             "what mixes is the model of a round, where no gradient is taken: leave it at consensus");
            return outer_gossip_plan(options, std::move(eventgrad));
          }};
}

}  // namespace hearsay

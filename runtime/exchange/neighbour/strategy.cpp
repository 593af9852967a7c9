#include "runtime/exchange/neighbour/strategy.hpp"

namespace hearsay {

Strategy read_strategy(Config& exchange, const LinkOptions& link) {
  const std::string name =
      exchange.choice("strategy", "consensus", {"consensus", "diffusion"},
                      "lockstep: take the gradient at the model that is sent, while it travels, or at the mixed one, "
                      "which stands larger steps and waits first");
  const bool diffusion = name == "diffusion";
  exchange.require(!diffusion || link.schedule == Schedule::lockstep, "strategy",
                   "an asynchronous rank does not wait for anything to mix with: leave it at consensus, or take "
                   "schedule: lockstep");
  exchange.require(!diffusion || link.delay == 0, "strategy",
                   "a delay is for messages that travel while ranks compute, and diffusion waits for them first: leave "
                   "out one of the two");
  return diffusion ? Strategy::diffusion : Strategy::consensus;
}

}  // namespace hearsay

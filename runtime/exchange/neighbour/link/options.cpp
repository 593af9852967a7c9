#include "runtime/exchange/neighbour/link/options.hpp"

namespace hearsay {

LinkOptions read_link_options(Config& exchange) {
  const Schedule schedule = read_schedule(exchange);
  const Iteration delay = exchange.integer(
      "delay", 0, Range::between(0, 1),
      "lockstep: mix with the neighbours' copies of this iteration, or of the one before, which have had a "
      "whole iteration to arrive");
  exchange.require(delay == 0 || schedule == Schedule::lockstep, "delay",
                   "an asynchronous rank waits for no iteration's copies: leave it at 0, or take schedule: lockstep");
  return {.schedule = schedule, .delay = delay, .in_flight = read_in_flight(exchange, schedule)};
}

Strategy read_strategy(Config& exchange, const LinkOptions& link) {
  const std::string name =
      exchange.choice("strategy", "consensus", {"consensus", "diffusion"},
                      "lockstep: take the gradient at the model that is sent, while it travels, or at the mixed one, "
                      "which stands larger steps and waits first");
  const bool diffusion = name == "diffusion";
  exchange.require(!diffusion || link.waits(), "strategy",
                   "an asynchronous rank does not wait for anything to mix with: leave it at consensus, or take "
                   "schedule: lockstep");
  exchange.require(!diffusion || link.delay == 0, "strategy",
                   "a delay is for messages that travel while ranks compute, and diffusion waits for them first: leave "
                   "out one of the two");
  return diffusion ? Strategy::diffusion : Strategy::consensus;
}

void read_lockstep(Config& exchange, std::string_view why_not) {
  exchange.choice("schedule", "lockstep", {"lockstep"}, "wait for every neighbour's packet of an iteration", why_not);
}

}  // namespace hearsay

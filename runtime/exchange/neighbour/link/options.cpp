#include "runtime/exchange/neighbour/link/options.hpp"

#include "runtime/exchange/in_flight.hpp"

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

}  // namespace hearsay

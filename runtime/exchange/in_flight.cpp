#include "runtime/exchange/in_flight.hpp"

namespace hearsay {

std::size_t read_in_flight(Config& exchange, Schedule schedule, std::size_t usual) {
  constexpr double most = 64;
  const bool waits = schedule == Schedule::lockstep;
  const Iteration in_flight = exchange.integer(
      "in_flight", waits ? 1 : static_cast<Iteration>(usual), Range::between(1, most),
      "asynchronous: packets of an edge that may be under way; what fires meanwhile leaves with the next one, with the "
      "values of that moment. More of them carry older values");
  exchange.require(in_flight == 1 || !waits, "in_flight",
                   "a lockstep iteration sends one packet along every edge: leave it at 1");
  return static_cast<std::size_t>(in_flight);
}

}  // namespace hearsay

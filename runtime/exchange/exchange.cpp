#include "runtime/exchange/exchange.hpp"

namespace hearsay {

const Measures& measures_of(Exchange& exchange) {
  static const struct None final : Measures {
  } none;
  const Measures* const measures = exchange.capabilities().measures;
  return measures != nullptr ? *measures : none;
}

void add_residual(Exchange& exchange, std::span<float> block) {
  if (const Residual* const residual = exchange.capabilities().residual) residual->add_residual(block);
}

Schedule read_schedule(Config& exchange) {
  const std::string name =
      exchange.choice("schedule", "lockstep", {"lockstep", "asynchronous"},
                      "wait for every neighbour's packet of an iteration, or use what has arrived");
  return name == "lockstep" ? Schedule::lockstep : Schedule::asynchronous;
}

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

#include "runtime/exchange/neighbour/alternating_edges.hpp"

namespace hearsay {

void AlternatingEdges::send(Iteration k, std::span<const std::uint8_t> fired) {
  link_.send(k, fired);
  move_by_own_events(k);
}

void AlternatingEdges::hear(Iteration k) {
  link_.receive(k);
  mixing_.mix(k, link_.every_segment());
}

void AlternatingEdges::answer(Iteration k) {
  hear(k);
  link_.send_pending(k);
  move_by_own_events(k);
}

void AlternatingEdges::move_by_own_events(Iteration k) {
  link_.note_ages_of_own_events(k);
  mixing_.mix(k, link_.every_segment());
}

void require_one_in_flight(Config& exchange, const LinkOptions& options) {
  exchange.require(
      !options.alternating || options.in_flight == 1, "in_flight",
      "where mixing keeps the mean, the two ends of an edge send in alternation: one packet of it is under "
      "way at most. Leave it at 1; several are for eventgrad with mixing: {name: stale}, and for dpsgd "
      "without correction");
}

}  // namespace hearsay

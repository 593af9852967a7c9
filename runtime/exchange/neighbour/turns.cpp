#include "runtime/exchange/neighbour/turns.hpp"

namespace hearsay {
namespace {

void move_by_events(Iteration k, NeighbourLink& link, const MixingRule& rule, DriftCorrection* drift,
                    const ExchangeContext& context) {
  const PhaseTimer timer(context.ledger, Phase::mix);
  const std::vector<std::uint8_t> every_segment(context.replica.layout.count(), std::uint8_t{1});
  const Mixing mixing{.layout = context.replica.layout,
                      .self_weight = static_cast<float>(context.neighbourhood.self_weight),
                      .edges = link.edges(),
                      .segments = every_segment,
                      .device = context.device(),
                      .by_events = true};
  if (drift != nullptr) drift->learn(k, mixing, rule);
  rule.mix(mixing, context.replica.values.span());
  rule.each_move(mixing, [&](const Move& move) { link.follow(move); });
  link.mixed();
}

}  // namespace

void require_turns(Config& exchange, const LinkOptions& options) {
  exchange.require(!options.by_turns || options.in_flight == 1, "in_flight",
                   "where mixing keeps the mean, the two ends of an edge take turns: one packet of it is under way at "
                   "most. Leave it at 1; several are for eventgrad with mixing: {name: stale}, and for dpsgd without "
                   "correction");
}

void send_by_turns(Iteration k, std::span<const std::uint8_t> fired, NeighbourLink& link, const MixingRule& rule,
                   DriftCorrection* drift, const ExchangeContext& context) {
  link.send(k, fired);
  link.note_ages_of_own_events(k);
  move_by_events(k, link, rule, drift, context);
}

void hear_by_turns(Iteration k, NeighbourLink& link, const MixingRule& rule, DriftCorrection* drift,
                   const ExchangeContext& context) {
  link.receive(k);
  move_by_events(k, link, rule, drift, context);
}

void answer_by_turns(Iteration k, NeighbourLink& link, const MixingRule& rule, DriftCorrection* drift,
                     const ExchangeContext& context) {
  hear_by_turns(k, link, rule, drift, context);
  link.send_pending(k);
  link.note_ages_of_own_events(k);
  move_by_events(k, link, rule, drift, context);
}

}  // namespace hearsay

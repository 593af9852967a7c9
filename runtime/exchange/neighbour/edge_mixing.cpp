#include "runtime/exchange/neighbour/edge_mixing.hpp"

namespace hearsay {

void EdgeMixing::mix(Iteration k, std::span<const std::uint8_t> segments) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  const Mixing mixing{.layout = context_.replica.layout,
                      .self_weight = static_cast<float>(context_.neighbourhood.self_weight),
                      .edges = link_.edges(k),
                      .segments = segments,
                      .device = context_.device(),
                      .by_events = by_events_};
  if (drift_ != nullptr) drift_->learn(link_.iteration_of_copies(k), mixing, rule_);
  rule_.mix(mixing, context_.replica.values.span());
  if (link_.copies_follow()) rule_.each_move(mixing, [&](const Move& move) { link_.follow(move); });
  link_.mixed(segments);
}

}  // namespace hearsay

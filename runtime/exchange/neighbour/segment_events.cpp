#include "runtime/exchange/neighbour/segment_events.hpp"

#include <algorithm>

namespace hearsay {

SegmentEvents::SegmentEvents(const ExchangeContext& context, const TriggerPlan& trigger,
                             const std::optional<StepRule>& rule)
    : context_(context),
      compute_norms_(context.device().norms(context.replica.layout)),
      norms_(initial_norms()),
      trigger_(trigger, context.replica.layout.lengths(), norms_, context.peers.rank()),
      fired_(norms_.size()) {
  if (trigger_.measure() == Measure::change) compute_changes_ = context.device().change_norms(context.replica.layout);
  if (trigger_.measure() == Measure::largest)
    compute_changes_ = context.device().largest_changes(context.replica.layout);
  if (rule) step_.emplace(*rule, context.steps, context.replica.layout, context.device());
}

std::vector<double> SegmentEvents::initial_norms() {
  std::vector<double> norms(context_.replica.layout.count());
  compute_norms_(context_.replica.values.span(), norms);
  return norms;
}

void SegmentEvents::decide(Iteration k, NeighbourLink& link) {
  if (step_) link.count_in(step_->length()), trigger_.dead_zone(step_->dead_zone());
  const PhaseTimer timer(context_.ledger, Phase::trigger);
  compute_norms_(context_.replica.values.span(), norms_);
  if (compute_changes_) measure_changes(link.own_copies());
  for (SegmentId s = 0; s < fired_.size(); ++s) trigger_.learning_rate(s, context_.steps[s].learning_rate);
  trigger_.decide(k, norms_, changes_, fired_);
}

// Where a neighbour holds less than others, because its ring was full, what it misses is owed to it anyway: the others
// count. Single values are looked at edge by edge when they are sent, so any edge counts.
void SegmentEvents::measure_changes(std::span<const FloatBlock> held) {
  changes_.assign(norms_.size(), 0.0);
  std::vector<double> of_one(norms_.size());
  for (std::size_t copy = 0; copy < held.size(); ++copy) {
    compute_changes_(context_.replica.values.span(), held[copy].span(), of_one);
    for (std::size_t s = 0; s < of_one.size(); ++s)
      changes_[s] =
          copy == 0 ? of_one[s] : (step_ ? std::max(changes_[s], of_one[s]) : std::min(changes_[s], of_one[s]));
  }
}

void SegmentEvents::state(Archive& archive) {
  trigger_.state(archive);
  if (step_) step_->state(archive);
}

}  // namespace hearsay

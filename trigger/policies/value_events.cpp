// Single values are events: a segment is sent as soon as one of its values has left the dead zone of its copy.
//   threshold = θΔ, of max |x_i − x̂_i|;   Δ and θ are those of `sparsify.quantiser: {name: dead_zone}`, for all values
// Send-on-delta (miskowicz2006send) for every value of a model. What crosses is the values that fired, and no others: a
// segment with one event costs a few bits, one without costs nothing.
// Deviates from the paper in: the change that is sent is rounded towards 0 to a multiple of Δ, and the rest stays.
// Cost: one read pass over x and x̂; no state.
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class ValueEvents final : public Trigger {
 public:
  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<ValueEvents>(*this); }
  double threshold(const Observation& observation) const override { return observation.dead_zone.value_or(0.0); }
  bool by_values() const override { return true; }
  Measure default_measure() const override { return Measure::largest; }
  /// A value that is pushed leaves the zone; one that is not has nothing to say.
  bool bounds_silence() const override { return true; }
};

std::unique_ptr<Trigger> make_value_events(Config&) { return std::make_unique<ValueEvents>(); }

}  // namespace

TriggerEntry value_events_trigger() {
  return {.name = "value_events",
          .summary = "a segment is sent when one of its values has left the dead zone, and only such values travel",
          .equation = "threshold = θΔ of max |x_i − x̂_i|, Δ and θ those of `sparsify.quantiser: {name: dead_zone}`",
          .cost = "one read pass over x and what neighbours hold of it; no state",
          .citation = "miskowicz2006send",
          .make = make_value_events};
}

}  // namespace hearsay

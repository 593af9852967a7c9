// The threshold follows the slope of the segment's norm; it is computed at an event and held until the next.
//   slope     = | ‖x_k‖ − ‖x_sent‖ | / (k − k_sent)                     at an event; ‖x_k − x̂‖ with `measure: change`
//   threshold = horizon · mean(slopes of the last `history` events)     held; 0 before there is a slope
// Ghosh, Aquino and Gupta, EventGraD: event-triggered communication in parallel machine learning, Neurocomputing
// 2022, eq. (6), and section 7 for the history (ghosh2021eventgrad). The slope must be that of past events: with a
// threshold re-computed from the current change at every iteration, change ≥ horizon · change / silence is a timer
// that fires every ⌈horizon⌉ iterations whatever the data. On a norm that drifts steadily it fires every ⌈horizon⌉
// iterations; in general nothing bounds the silence (a norm that settles after a steep event), so see
// `maximum_silence`. A norm that never changes has threshold 0 and is always sent.
// Deviates from the paper in: while fewer than `history` slopes exist, the mean is over those that do. The very
// first event has no event before it and gives no slope.
// Cost: O(1) a segment and iteration, O(history) an event; history + 2 words a segment.
#include <vector>

#include "trigger/slope_history.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Adaptive final : public Trigger {
 public:
  explicit Adaptive(Config& config)
      : horizon_(config.real("horizon", 1.0, {.min = 0.0, .max = 1e9, .min_excluded = true},
                             "iterations that the threshold looks ahead: about so long a steady drift stays silent")),
        slopes_(0, static_cast<std::size_t>(
                       config.integer("history", 2, Range::between(1, 10000), "events whose slopes are averaged"))) {}

  std::unique_ptr<Trigger> for_segments(std::size_t segments) const override {
    auto fresh = std::make_unique<Adaptive>(*this);
    fresh->slopes_ = SlopeHistory(segments, slopes_.length());
    fresh->thresholds_.assign(segments, 0.0);
    return fresh;
  }

  double threshold(const Observation& observation) const override { return thresholds_[observation.segment]; }

  void fired(const Observation& observation) override {
    if (observation.iteration_of_event < 0) return;
    const SegmentId s = observation.segment;
    slopes_.push(s, observation.slope());
    thresholds_[s] = horizon_ * (slopes_.sum(s) / static_cast<double>(slopes_.count(s)));
  }

  void state(Archive& archive) override {
    slopes_.state(archive);
    archive.values("thresholds held", std::span(thresholds_));
  }

 private:
  double horizon_;
  SlopeHistory slopes_;
  std::vector<double> thresholds_;  // held, one a segment
};

std::unique_ptr<Trigger> make_adaptive(Config& config) { return std::make_unique<Adaptive>(config); }

}  // namespace

TriggerEntry adaptive_trigger() {
  return {.name = "adaptive",
          .summary = "EventGraD's threshold: the recent slope of the norm times a horizon, held from event to event",
          .equation =
              "at an event: slope = | ‖x_k‖ − ‖x_sent‖ | / (k − k_sent);  "
              "threshold = horizon · mean(slopes of the last `history` events), held until the next event",
          .cost =
              "O(1) a segment and iteration, O(history) an event; history + 2 words a segment. A tensor that never "
              "changes has threshold 0 and is sent in every iteration: a frozen layer saves nothing",
          .citation = "ghosh2021eventgrad, eq. (6); the history: section 7",
          .make = make_adaptive};
}

}  // namespace hearsay

// The threshold of EventGraD's released program: it is multiplied by `horizon` at every iteration, before the test.
//   mean        = Σ(slopes of the last `history` events) / history      frozen at an event; slots start at 0
//   threshold_k = horizon^(k − k_sent) · mean                           so horizon¹ · mean one iteration after the
//   event
// Ghosh and Gupta, EventGraD, released code, dmnist/event/event.cpp, lines 324 to 392 (ghosh2021eventgrad).
// horizon < 1: the threshold decays and every segment fires sooner or later. horizon > 1: it grows exponentially while
// a norm grows about linearly, so a segment can fall silent for ever; on a steady drift it fires at the first silence n
// with n ≥ horizonⁿ: every iteration up to horizon 1, every 2nd up to √2, every 3rd up to 3^(1/3) ≈ 1.442, never again
// above. Bound it with `maximum_silence`.
// Deviates from the paper in: the paper's eq. (6) holds the threshold between events; that is the policy `adaptive`.
// Deviates from the released code in: the power is taken at once, not product by product (rounding), in double instead
// of float; the first slope is measured from ‖x_0‖, not from 0. The code counts iterations from 1 and forces 29 events:
// `warmup_iterations: 29` here.
// Cost: one power a segment and iteration, O(history) an event; history + 2 words a segment.
#include <cmath>
#include <vector>

#include "trigger/slope_history.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class AdaptiveCompounding final : public Trigger {
 public:
  explicit AdaptiveCompounding(Config& config)
      : horizon_(config.real("horizon", 1.0, {.min = 0.0, .max = 1e9, .min_excluded = true},
                             "factor on the threshold at every iteration; above 1 a segment can fall silent for ever")),
        slopes_(0, static_cast<std::size_t>(
                       config.integer("history", 2, Range::between(1, 10000), "events whose slopes are averaged"))) {}

  std::unique_ptr<Trigger> for_segments(std::size_t segments) const override {
    auto fresh = std::make_unique<AdaptiveCompounding>(*this);
    fresh->slopes_ = SlopeHistory(segments, slopes_.length());
    fresh->means_.assign(segments, 0.0);
    return fresh;
  }

  double threshold(const Observation& observation) const override {
    const double mean = means_[observation.segment];
    if (mean == 0.0) return 0.0;  // also when the power overflows: ∞ · 0 is not a number
    return std::pow(horizon_, static_cast<double>(observation.silence())) * mean;
  }

  void fired(const Observation& observation) override {
    const SegmentId s = observation.segment;
    slopes_.push(s, observation.slope());
    means_[s] = slopes_.sum(s) / static_cast<double>(slopes_.length());
  }

  void state(Archive& archive) override {
    slopes_.state(archive);
    archive.values("mean slopes", std::span(means_));
  }

 private:
  double horizon_;
  SlopeHistory slopes_;
  std::vector<double> means_;  // frozen at the event, one a segment
};

std::unique_ptr<Trigger> make_adaptive_compounding(Config& config) {
  return std::make_unique<AdaptiveCompounding>(config);
}

}  // namespace

TriggerEntry adaptive_compounding_trigger() {
  return {.name = "adaptive_compounding",
          .summary = "the threshold of EventGraD's released code: multiplied by horizon at every iteration",
          .equation =
              "at an event: mean = Σ(slopes of the last `history` events) / history;  "
              "threshold_k = horizon^(k − k_sent) · mean",
          .cost =
              "one power a segment and iteration, O(history) an event; history + 2 words a segment; a frozen layer as "
              "under adaptive",
          .citation = "ghosh2021eventgrad, released code, dmnist/event/event.cpp",
          .make = make_adaptive_compounding};
}

}  // namespace hearsay

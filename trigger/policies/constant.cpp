// One threshold for all segments and all iterations.
//   threshold = `threshold`
// George and Gurram, Distributed deep learning with event-triggered communication, 2019 (george2019distributed), where
// the threshold may also fall with k; Ghosh and Gupta, EventGraD (ghosh2021eventgrad), section 4, as the simplest
// choice. Threshold 0 is D-PSGD.
// Deviates from the paper in: the change is that of the norm, | ‖x_k‖ − ‖x_sent‖ |, as in EventGraD, unless
// `measure: change` asks for ‖x_k − x̂‖.
// Cost: O(1) a segment and iteration; no state. The norms of segments differ by orders of magnitude, so no one value
// suits them all.
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Constant final : public Trigger {
 public:
  explicit Constant(Config& config)
      : threshold_(config.real("threshold", 0.0, Range::at_least(0.0),
                               "change of a segment that is worth sending, by `measure`; 0 sends always")) {}

  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<Constant>(*this); }
  double threshold(const Observation&) const override { return threshold_; }

 private:
  double threshold_;
};

std::unique_ptr<Trigger> make_constant(Config& config) { return std::make_unique<Constant>(config); }

}  // namespace

TriggerEntry constant_trigger() {
  return {.name = "constant",
          .summary = "one threshold for all segments and iterations; 0 is D-PSGD",
          .equation = "threshold = the key `threshold`",
          .cost = "O(1) a segment and iteration; no state",
          .citation = "ghosh2021eventgrad, section 4; george2019distributed",
          .make = make_constant};
}

}  // namespace hearsay

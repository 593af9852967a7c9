// A threshold that shrinks geometrically with k, whatever the segment does: the choice that EventGraD's theory covers.
//   threshold_k = scale · ratio^k
// Ghosh, Aquino and Gupta, EventGraD, Corollary 2 (ghosh2021eventgrad): thresholds α·γ^k with 0 < γ < 1 keep D-PSGD's
// rate of convergence, O(1/√(P·K)). The form goes back to Seyboth, Dimarogonas and Johansson, Automatica 2013
// (seyboth2013event).
// Deviates from the paper in: the threshold is on the change of each segment, while the theory's is on that of each
// worker's whole model. The change is ‖x_k − x̂‖, for which the rate is proved; the paper's experiments watch the norm
// (`measure: norm`). k counts warm-up iterations too.
// Cost: one power a segment and iteration; no state.
#include <cmath>

#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Geometric final : public Trigger {
 public:
  explicit Geometric(Config& config)
      : scale_(config.real("scale", 0.1, {.min = 0.0, .max = 1e9, .min_excluded = true},
                           "threshold at iteration 0, a change of a segment")),
        ratio_(config.real("ratio", 0.999, {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                           "factor on the threshold from one iteration to the next")) {}

  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<Geometric>(*this); }
  double threshold(const Observation& observation) const override {
    return scale_ * std::pow(ratio_, static_cast<double>(observation.iteration));
  }
  Measure default_measure() const override { return Measure::change; }

 private:
  double scale_, ratio_;
};

std::unique_ptr<Trigger> make_geometric(Config& config) { return std::make_unique<Geometric>(config); }

}  // namespace

TriggerEntry geometric_trigger() {
  return {.name = "geometric",
          .summary = "a threshold that shrinks geometrically with k: keeps D-PSGD's rate of convergence",
          .equation = "threshold_k = scale · ratio^k",
          .cost = "one power a segment and iteration; no state",
          .citation = "ghosh2021eventgrad, Corollary 2; seyboth2013event",
          .make = make_geometric};
}

}  // namespace hearsay

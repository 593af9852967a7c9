// SPARQ-SGD's trigger: the change is weighed against the learning rate, more severely from iteration to iteration.
//   threshold_k² = c_k η_k²,   c_k = scale · (k + 1)^exponent          on ‖x_k − x̂‖
// Singh, Data, George and Diggavi, SPARQ-SGD, 2019 (singh2019sparq), Algorithm 1: with c_k = o(k), so exponent < 1, the
// rate stays that of D-PSGD, O(1/√(P·K)) on nonconvex losses and O(1/(P·K)) on strongly convex ones. A step moves a
// segment by η ‖g_s‖, so √c_k is a norm of summed gradients: the learning rate may be tuned and fall without c.
// Deviates from the paper in: the threshold is on each segment; the paper has one a rank, on the whole model, so for as
// many events `scale` is smaller by about the number of segments. The paper tests x_k − η g_k, before mixing and once
// in H local steps; here it is x_k, after mixing and the step, in every iteration. A change that equals the threshold
// fires. The rest of the algorithm is other keys: mixing `difference`, selector `topk`. Its theory lets c_k be anything
// ≤ c_0 k^(1−ε) and its experiments raise c in steps by epochs; the power and the defaults are ours.
// Cost: one power a segment and iteration; no state; the change costs a block for x̂ and a pass over two blocks.
#include <cmath>

#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Sparq final : public Trigger {
 public:
  explicit Sparq(Config& config)
      : scale_(config.real("scale", 2.0, {.min = 0.0, .max = 1e9, .min_excluded = true},
                           "c at iteration 0: the square of a change in units of the learning rate")),
        exponent_(config.real("exponent", 0.5, Range::fraction_below_one(), "power of k + 1 by which c grows")) {}

  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<Sparq>(*this); }
  double threshold(const Observation& observation) const override {
    const double c = scale_ * std::pow(static_cast<double>(observation.iteration) + 1.0, exponent_);
    return std::sqrt(c) * observation.rate();
  }
  Measure default_measure() const override { return Measure::change; }
  bool measures_steps() const override { return true; }

 private:
  double scale_, exponent_;
};

std::unique_ptr<Trigger> make_sparq(Config& config) { return std::make_unique<Sparq>(config); }

}  // namespace

TriggerEntry sparq_trigger() {
  return {.name = "sparq",
          .summary = "SPARQ-SGD's threshold on the change: in units of the learning rate, growing slowly with k",
          .equation = "threshold_k² = c_k η_k²;  c_k = scale · (k + 1)^exponent",
          .cost = "one power a segment and iteration; no state; the change costs a block for x̂ and a pass over two",
          .citation = "singh2019sparq, Algorithm 1",
          .make = make_sparq};
}

}  // namespace hearsay

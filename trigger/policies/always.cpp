// Every segment is sent at every iteration: D-PSGD.
//   threshold = 0
// Lian et al., Can decentralized algorithms outperform centralized algorithms?, NeurIPS 2017, Algorithm 1
// (lian2017dpsgd).
// Deviates from the paper in: nothing.
// Cost: segments × out-neighbours messages an iteration; no state.
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Always final : public Trigger {
 public:
  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<Always>(*this); }
  bool bounds_silence() const override { return true; }
  double threshold(const Observation&) const override { return 0.0; }
  std::optional<Iteration> pace() const override { return 1; }
};

std::unique_ptr<Trigger> make_always(Config&) { return std::make_unique<Always>(); }

}  // namespace

TriggerEntry always_trigger() {
  return {.name = "always",
          .summary = "every segment at every iteration: D-PSGD",
          .equation = "threshold = 0",
          .cost = "segments × out-neighbours messages an iteration; no state",
          .citation = "lian2017dpsgd, Algorithm 1",
          .make = make_always};
}

}  // namespace hearsay

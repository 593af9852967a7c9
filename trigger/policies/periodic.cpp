// Every segment is sent at every `period`-th iteration; in between, ranks take local steps: local SGD on a graph.
//   threshold_k = 0 if k mod period = 0 or length ≤ small_always, else +∞
// Stich, Local SGD converges fast and communicates little, ICLR 2019, Algorithm 1 (stich2019local); on a graph: Wang
// and Joshi, Cooperative SGD, JMLR 2021 (wang2021cooperative). The other triggers must beat this one at equal bytes
// to be worth their trouble. A trigger that decides tensor by tensor sends small tensors nearly for nothing;
// `small_always` gives this policy the same advantage.
// Deviates from the paper in: the first event is at k = 0, where all replicas are still equal; the paper's comes
// after the first `period` steps. So the x_k that are averaged are those of k = period, 2·period, …, as in the
// paper. With period = 1 this is `always`. Warm-up iterations are events, as for every policy. `small_always` is not
// in the papers.
// Cost: segments × out-neighbours / period messages an iteration on average, all at once, small segments at every one;
// no state.
#include <limits>

#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class Periodic final : public Trigger {
 public:
  explicit Periodic(Config& config)
      : period_(config.integer("period", 10, Range::at_least(1), "iterations from one event to the next (H)")),
        small_always_(static_cast<std::size_t>(
            config.integer("small_always", 0, Range::at_least(0),
                           "segments of at most so many values are sent at every iteration; 0 = none"))) {}

  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<Periodic>(*this); }
  bool bounds_silence() const override { return true; }
  double threshold(const Observation& observation) const override {
    const bool small = small_always_ > 0 && observation.length <= small_always_;
    return small || observation.iteration % period_ == 0 ? 0.0 : std::numeric_limits<double>::infinity();
  }
  std::optional<Iteration> pace() const override { return small_always_ == 0 ? std::optional(period_) : std::nullopt; }
  bool local_steps_between_events() const override { return true; }

 private:
  Iteration period_;
  std::size_t small_always_;  // 0 = off
};

std::unique_ptr<Trigger> make_periodic(Config& config) { return std::make_unique<Periodic>(config); }

}  // namespace

TriggerEntry periodic_trigger() {
  return {
      .name = "periodic",
      .summary = "every segment at every period-th iteration, local steps in between: local SGD",
      .equation = "threshold_k = 0 if k mod period = 0 or length ≤ small_always, else +∞",
      .cost =
          "segments × out-neighbours / period messages an iteration on average, small segments at every one; no state",
      .citation = "stich2019local, Algorithm 1; on a graph wang2021cooperative",
      .make = make_periodic};
}

}  // namespace hearsay

// Every segment fires with the same probability, whatever it has to say: what an event trigger has to beat.
//   threshold_k = 0 if u(seed, rank, segment, k) < probability, else +∞;   u uniform in [0, 1)
// Zehtabi, Han, Parasnis, Hosseinalipour and Brinton, Decentralized Sporadic Federated Learning, 2024
// (zehtabi2024sporadic): exchanges that happen at random, independently of the models. A trigger that looks at the
// model is worth its trouble only where it does better than this one at the same rate of events; `periodic` is the
// other comparator.
// Deviates from the paper in: the draw is a rank's, for a segment and all its neighbours; the paper draws for every
// edge and the whole model, and local steps at random too. Ranks draw independently of each other.
// Cost: one hash a segment and iteration; no state: u is a function of the four numbers, so a run that is resumed draws
// what one that was not stopped would have drawn.
#include <limits>

#include "base/random.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

class RandomFiring final : public Trigger {
 public:
  explicit RandomFiring(Config& config)
      : probability_(config.real("probability", 0.1, {.min = 0.0, .max = 1.0, .min_excluded = true},
                                 "that a segment fires at an iteration (of outer steps: at a round)")),
        seed_(static_cast<std::uint64_t>(config.integer("seed", 0, Range::at_least(0), "of the draws"))) {}

  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<RandomFiring>(*this); }
  double threshold(const Observation& observation) const override {
    const std::uint64_t of_rank = stream_seed(seed_, "random trigger", static_cast<std::uint64_t>(observation.rank));
    const std::uint64_t of_segment = scramble(of_rank + observation.segment);
    const std::uint64_t draw = scramble(of_segment + static_cast<std::uint64_t>(observation.iteration));
    const double uniform = static_cast<double>(draw >> 11) * 0x1.0p-53;
    return uniform < probability_ ? 0.0 : std::numeric_limits<double>::infinity();
  }

 private:
  double probability_;
  std::uint64_t seed_;
};

std::unique_ptr<Trigger> make_random(Config& config) { return std::make_unique<RandomFiring>(config); }

}  // namespace

TriggerEntry random_trigger() {
  return {.name = "random",
          .summary = "every segment with one probability, whatever it has to say: what other triggers have to beat",
          .equation = "threshold_k = 0 if u(seed, rank, segment, k) < probability, else +∞;  u uniform in [0, 1)",
          .cost = "one hash a segment and iteration; no state",
          .citation = "zehtabi2024sporadic",
          .make = make_random};
}

}  // namespace hearsay

#pragma once
// A trigger on segments of one value each, none below 0: the value is the segment's norm, and how far it has gone from
// the value that was sent is its change by either measure.
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trigger/trigger.hpp"

namespace hearsay::test {

inline TriggerEngine make_engine(const std::string& yaml, std::span<const std::size_t> lengths,
                                 std::span<const double> initial_norms, int rank = 0) {
  Config config = Config::from_text(yaml);
  const TriggerPlan plan(config);
  config.document().throw_if_invalid();
  return TriggerEngine(plan, lengths, initial_norms, rank);
}

class Replay {
 public:
  static constexpr double learning_rate = 0.125;

  Replay(const std::string& yaml, std::span<const double> initial)
      : engine_(make_engine(yaml, std::vector<std::size_t>(initial.size(), 1), initial)),
        sent_(initial.begin(), initial.end()) {
    for (SegmentId s = 0; s < initial.size(); ++s) engine_.learning_rate(s, learning_rate);
  }

  void decide(Iteration k, std::span<const double> values, std::span<std::uint8_t> fired) {
    std::vector<double> changes;
    for (std::size_t s = 0; s < values.size() && engine_.measure() != Measure::norm; ++s)
      changes.push_back(std::abs(values[s] - sent_[s]));
    engine_.decide(k, values, changes, fired);
    for (std::size_t s = 0; s < values.size(); ++s) {
      if (fired[s] != 0) sent_[s] = values[s];
    }
  }
  const TriggerEngine& engine() const { return engine_; }

 private:
  TriggerEngine engine_;
  std::vector<double> sent_;
};

}  // namespace hearsay::test

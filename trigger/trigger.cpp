// The rule that all policies share: warm-up, threshold, maximum silence.
#include "trigger/trigger.hpp"

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

void require_finite_norms(Iteration k, std::span<const double> norms) {
  for (std::size_t s = 0; s < norms.size(); ++s) {
    if (std::isfinite(norms[s])) continue;
    std::ostringstream message;
    message << "the norm of segment " << s << " at iteration " << k << " is " << norms[s]
            << ": the training has diverged. Lower optimizer.learning_rate, or γ if the mixing rule has one.";
    throw DivergenceError(message.str());
  }
}

}  // namespace

double Observation::change() const { return std::abs(norm - norm_at_event); }

TriggerPlan::TriggerPlan(Config& config)
    : policy(chosen_entry(triggers(), config, "adaptive", "when a segment has news worth sending (the trigger policy)")
                 .make(config)),
      warmup_iterations(config.integer("warmup_iterations", 30, Range::at_least(0),
                                       "iterations at the start in which every segment is sent")),
      maximum_silence(config.integer("maximum_silence", 0, Range::at_least(0),
                                     "iterations after which a segment is sent whatever its threshold; 0 = never")) {}

TriggerEngine::TriggerEngine(const TriggerPlan& plan, std::span<const double> initial_norms)
    : policy_(plan.policy->for_segments(initial_norms.size())),
      warmup_iterations_(plan.warmup_iterations),
      maximum_silence_(plan.maximum_silence),
      norm_at_event_(initial_norms.begin(), initial_norms.end()),
      iteration_of_event_(initial_norms.size(), -1),
      thresholds_(initial_norms.size(), 0.0) {}

void TriggerEngine::decide(Iteration k, std::span<const double> norms, std::span<std::uint8_t> fired) {
  if (norms.size() != norm_at_event_.size() || fired.size() != norms.size()) {
    throw std::logic_error("TriggerEngine::decide: " + std::to_string(norms.size()) + " norms and " +
                           std::to_string(fired.size()) + " flags for " + std::to_string(norm_at_event_.size()) +
                           " segments");
  }
  if (k <= last_iteration_) {
    throw std::logic_error("TriggerEngine::decide: iteration " + std::to_string(k) + " after iteration " +
                           std::to_string(last_iteration_));
  }
  require_finite_norms(k, norms);
  last_iteration_ = k;
  for (std::size_t s = 0; s < norms.size(); ++s) {
    fired[s] = decide_segment({.segment = static_cast<SegmentId>(s),
                               .iteration = k,
                               .norm = norms[s],
                               .norm_at_event = norm_at_event_[s],
                               .iteration_of_event = iteration_of_event_[s]});
  }
}

bool TriggerEngine::decide_segment(const Observation& observation) {
  const SegmentId s = observation.segment;
  thresholds_[s] = policy_->threshold(observation);
  const bool warming_up = observation.iteration < warmup_iterations_;
  const bool too_silent = maximum_silence_ > 0 && observation.silence() >= maximum_silence_;
  const bool fires = warming_up || too_silent || observation.change() >= thresholds_[s];
  if (fires) {
    policy_->fired(observation);
    norm_at_event_[s] = observation.norm;
    iteration_of_event_[s] = observation.iteration;
  }
  return fires;
}

}  // namespace hearsay

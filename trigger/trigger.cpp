// The rule that all policies share: measure, warm-up, threshold, bounds of silence.
#include "trigger/trigger.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

void require_finite(Iteration k, const char* measure, std::span<const double> measures) {
  for (std::size_t s = 0; s < measures.size(); ++s) {
    if (std::isfinite(measures[s])) continue;
    std::ostringstream message;
    message << "the " << measure << " of parameter " << s << " (from 0, in the model's order) at iteration " << k
            << " is " << measures[s];
    throw DivergenceError(message.str());
  }
}

}  // namespace

double Observation::rate() const {
  if (learning_rate) return *learning_rate;
  throw ConfigError(
      "the trigger weighs changes against the learning rate, and nobody has told it that of parameter " +
      std::to_string(segment) +
      " (from 0, in the model's order): say it before the first step. In Python: hearsay.join(…, optimizer=optimizer) "
      "or learning_rate=; in a C++ loop: the participant's option `step`");
}

namespace {

constexpr std::array<std::string_view, 3> measure_names{"norm", "change", "largest"};  // by Measure

Measure read_measure(Config& config, Measure fallback) {
  const std::string name = config.choice(
      "measure", measure_names[static_cast<std::size_t>(fallback)], {"norm", "change", "largest"},
      "what has to reach the threshold: how far a segment's norm is from that of its last event; the norm "
      "of its change, the segment minus what neighbours hold of it; or the largest change of a value");
  return static_cast<Measure>(std::ranges::find(measure_names, name) - measure_names.begin());
}

ProvidedTrigger read_policy(Config& config) {
  const std::any* own = config.document().provided(provided_trigger);
  if (own == nullptr)
    return chosen_entry(triggers(), config, "adaptive", "when a segment has news worth sending (the trigger policy)")
        .make(config);
  static_cast<void>(config.choice("name", "own", {"own"}, "the program brings its own trigger policy"));
  return std::any_cast<ProvidedTrigger>(*own);
}

double read_silence_growth(Config& config) {
  const double growth = config.real("silence_growth", 0.0, {.min = 0.0, .max = 1e9},
                                    "a segment is sent when its silence is so many times its longest recent one, at "
                                    "least 1 time; 0 = never");
  config.require(growth == 0.0 || growth >= 1.0, "silence_growth", "must be 0 (off) or at least 1");
  return growth;
}

}  // namespace

TriggerPlan::TriggerPlan(Config& config)
    : policy(read_policy(config)),
      measure(read_measure(config, policy->default_measure())),
      warmup_iterations(config.integer("warmup_iterations", 30, Range::at_least(0),
                                       "iterations at the start in which every segment is sent")),
      maximum_silence(config.integer("maximum_silence", 0, Range::at_least(0),
                                     "iterations after which a segment is sent whatever its threshold; 0 = never")),
      silence_growth(read_silence_growth(config)) {}

std::pair<Iteration, std::optional<Iteration>> TriggerPlan::paces() const {
  const std::optional<Iteration> longest = maximum_silence > 0 ? std::optional(maximum_silence) : std::nullopt;
  const std::optional<Iteration> pace = policy->pace();
  if (!pace || longest.value_or(*pace) < *pace) return {1, longest};
  return {*pace, pace};
}

std::optional<double> TriggerPlan::growth_of_silence() const {
  if (policy->bounds_silence() || maximum_silence > 0) return 1.0;
  if (silence_growth > 0.0) return silence_growth;
  return std::nullopt;
}

TriggerEngine::TriggerEngine(const TriggerPlan& plan, std::span<const std::size_t> lengths,
                             std::span<const double> initial_norms, int rank)
    : policy_(plan.policy->for_segments(initial_norms.size())),
      rank_(rank),
      measure_(plan.measure),
      warmup_iterations_(plan.warmup_iterations),
      maximum_silence_(plan.maximum_silence),
      silence_growth_(plan.silence_growth),
      lengths_(lengths.begin(), lengths.end()),
      learning_rates_(initial_norms.size()),
      norm_at_event_(initial_norms.begin(), initial_norms.end()),
      iteration_of_event_(initial_norms.size(), -1),
      thresholds_(initial_norms.size(), 0.0),
      longest_silence_(initial_norms.size()) {
  if (lengths.size() != initial_norms.size()) {
    throw std::logic_error("TriggerEngine: " + std::to_string(lengths.size()) + " lengths and " +
                           std::to_string(initial_norms.size()) + " norms");
  }
}

void TriggerEngine::require_right_call(Iteration k, std::size_t norms, std::size_t changes, std::size_t flags) const {
  const std::size_t segments = lengths_.size();
  if (norms != segments || flags != segments || changes != (measure_ == Measure::norm ? 0 : segments)) {
    throw std::logic_error("TriggerEngine::decide: " + std::to_string(norms) + " norms, " + std::to_string(changes) +
                           " changes and " + std::to_string(flags) + " flags for " + std::to_string(segments) +
                           " segments, measured by their " +
                           std::string(measure_names[static_cast<std::size_t>(measure_)]));
  }
  if (k <= last_iteration_) {
    throw std::logic_error("TriggerEngine::decide: iteration " + std::to_string(k) + " after iteration " +
                           std::to_string(last_iteration_));
  }
}

void TriggerEngine::decide(Iteration k, std::span<const double> norms, std::span<const double> changes,
                           std::span<std::uint8_t> fired) {
  require_right_call(k, norms.size(), changes.size(), fired.size());
  require_finite(k, "norm", norms);
  require_finite(k, "change", changes);
  last_iteration_ = k;
  for (std::size_t s = 0; s < norms.size(); ++s) {
    const double change = measure_ == Measure::norm ? std::abs(norms[s] - norm_at_event_[s]) : changes[s];
    fired[s] = decide_segment({.segment = static_cast<SegmentId>(s),
                               .length = lengths_[s],
                               .iteration = k,
                               .norm = norms[s],
                               .norm_at_event = norm_at_event_[s],
                               .change = change,
                               .iteration_of_event = iteration_of_event_[s],
                               .learning_rate = learning_rates_[s],
                               .rank = rank_,
                               .dead_zone = dead_zone_});
  }
}

void TriggerEngine::state(Archive& archive) {
  archive.value("iteration of the last decision", last_iteration_);
  archive.values("norms at the last event", std::span(norm_at_event_));
  archive.values("iterations of the last event", std::span(iteration_of_event_));
  for (const Iteration k : iteration_of_event_)
    if (k < -1 || k > last_iteration_) archive.refuse("iterations of the last event", "are not before the next one");
  archive.values("thresholds", std::span(thresholds_));
  longest_silence_.state(archive);
  policy_->state(archive);
}

bool TriggerEngine::too_silent(const Observation& observation) const {
  const Iteration silence = observation.silence();
  const double longest = longest_silence_.longest(observation.segment);
  return (maximum_silence_ > 0 && silence >= maximum_silence_) ||
         (silence_growth_ > 0.0 && static_cast<double>(silence) >= silence_growth_ * longest);
}

bool TriggerEngine::decide_segment(const Observation& observation) {
  const SegmentId s = observation.segment;
  thresholds_[s] = policy_->threshold(observation);
  const bool warming_up = observation.iteration < warmup_iterations_;
  const bool fires = warming_up || too_silent(observation) || observation.change >= thresholds_[s];
  if (fires) {
    policy_->fired(observation);
    longest_silence_.event(s, observation.silence());
    norm_at_event_[s] = observation.norm;
    iteration_of_event_[s] = observation.iteration;
  }
  return fires;
}

}  // namespace hearsay

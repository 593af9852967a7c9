#include "runtime/exchange/step_response.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.hpp"

namespace hearsay {
namespace {

void require_step(const StepResponse& step, const std::string& of) {
  const double eta = step.learning_rate.value_or(0.0);
  if (!(eta >= 0.0) || !std::isfinite(eta))
    throw ConfigError("the learning rate of " + of + " is " + std::to_string(eta) + "; it is a number from 0 up");
  if (!(step.momentum >= 0.0 && step.momentum < 1.0))
    throw ConfigError("the momentum of " + of + " is " + std::to_string(step.momentum) +
                      "; it is a number from 0 up and below 1");
}

}  // namespace

void StepResponses::learning_rate(double eta) {
  require_step({.learning_rate = eta}, "all segments");
  for (StepResponse& step : steps_) step.learning_rate = eta;
}

void StepResponses::set(std::span<const StepResponse> steps) {
  if (steps.size() != steps_.size())
    throw std::logic_error("participant: " + std::to_string(steps.size()) + " steps for " +
                           std::to_string(steps_.size()) + " segments");
  for (SegmentId s = 0; s < steps.size(); ++s) require_step(steps[s], "'" + layout_[s].name + "'");
  std::ranges::copy(steps, steps_.begin());
}

void StepResponses::require_rates() const {
  for (SegmentId s = 0; needed_ && s < steps_.size(); ++s)
    if (!steps_[s].learning_rate)
      throw ConfigError(
          "this exchange measures by how far a step moves the model, and nobody has told it the learning "
          "rate of '" +
          layout_[s].name +
          "': call Participant::learning_rate, or `steps`, before `finish`; or say it once by "
          "ParticipantOptions::step");
}

bool StepResponses::plain() const {
  return std::ranges::all_of(
      steps_, [](const StepResponse& step) { return step.learning_rate && step.momentum == 0.0 && !step.normalised; });
}

void StepResponses::state(Archive& archive) {
  for (StepResponse& step : steps_) archive.optional("learning rate", step.learning_rate);
}

}  // namespace hearsay

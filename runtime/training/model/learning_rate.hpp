#pragma once
// How the learning rate changes over a run.
#include <memory>
#include <span>

#include "base/config/table.hpp"

namespace hearsay {

/// A factor on the base learning rate as a function of time, counted in epochs so that it does not depend on P or the
/// batch size.
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  /// `epoch` in [0, epochs): fractions of an epoch count.
  virtual double factor(double epoch, double epochs) const = 0;
};

using LearningRateScheduleEntry = Entry<LearningRateSchedule>;
std::span<const LearningRateScheduleEntry> learning_rate_schedules();

/// The learning rate of every iteration: base · schedule · warm-up. Reads `schedule:` and `warmup_epochs` of the
/// section `optimizer:`.
class LearningRate {
 public:
  LearningRate(Config& optimizer, double base);
  double at(double epoch, double epochs) const;

 private:
  double base_;
  double warmup_epochs_;
  std::unique_ptr<LearningRateSchedule> schedule_;
};

}  // namespace hearsay

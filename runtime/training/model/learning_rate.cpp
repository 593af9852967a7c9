// Learning-rate schedules: constant, step, cosine; with an optional linear warm-up before any of them (goyal2017large,
// section 2.2).
// Cost: nothing worth counting, one evaluation an iteration.
#include "runtime/training/model/learning_rate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace hearsay {
namespace {

class Constant final : public LearningRateSchedule {
 public:
  double factor(double, double) const override { return 1.0; }
};

class Step final : public LearningRateSchedule {
 public:
  explicit Step(Config& config)
      : milestones_(config.reals("milestones", {}, Range::above(0.0), "epochs at which the rate falls, ascending")),
        factor_(config.real("factor", 0.1, Range::fraction_above_zero(), "what the rate is multiplied by at each")) {
    config.require(!milestones_.empty(), "milestones", "the schedule 'step' needs at least one epoch to step at");
    config.require(std::ranges::is_sorted(milestones_), "milestones", "the epochs must be ascending");
  }
  double factor(double epoch, double) const override {
    const auto passed = std::ranges::count_if(milestones_, [&](double milestone) { return milestone <= epoch; });
    return std::pow(factor_, static_cast<double>(passed));
  }

 private:
  std::vector<double> milestones_;
  double factor_;
};

class Cosine final : public LearningRateSchedule {
 public:
  explicit Cosine(Config& config)
      : floor_(config.real("floor", 0.0, Range::between(0.0, 1.0), "the factor that the run ends with")) {}
  double factor(double epoch, double epochs) const override {
    const double done = epochs > 0.0 ? std::clamp(epoch / epochs, 0.0, 1.0) : 1.0;
    return floor_ + (1.0 - floor_) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  }

 private:
  double floor_;
};

}  // namespace

std::span<const LearningRateScheduleEntry> learning_rate_schedules() {
  static const std::array entries{
      LearningRateScheduleEntry{
          .name = "constant",
          .summary = "the same learning rate all the time",
          .equation = "factor = 1",
          .cost = "none",
          .citation = "robbins1951stochastic",
          .make = [](Config&) -> std::unique_ptr<LearningRateSchedule> { return std::make_unique<Constant>(); }},
      LearningRateScheduleEntry{.name = "step",
                                .summary = "falls by a factor at given epochs",
                                .equation = "factor^(number of milestones <= epoch)",
                                .cost = "none",
                                .citation = "he2016deep, section 4.2",
                                .make = [](Config& config) -> std::unique_ptr<LearningRateSchedule> {
                                  return std::make_unique<Step>(config);
                                }},
      LearningRateScheduleEntry{.name = "cosine",
                                .summary = "half a cosine from the base rate down to the floor",
                                .equation = "floor + (1 - floor) (1 + cos(pi epoch / epochs)) / 2",
                                .cost = "none",
                                .citation = "loshchilov2017sgdr, eq. (5), without restarts",
                                .make = [](Config& config) -> std::unique_ptr<LearningRateSchedule> {
                                  return std::make_unique<Cosine>(config);
                                }}};
  return entries;
}

LearningRate::LearningRate(Config& optimizer, double base)
    : base_(base),
      warmup_epochs_(optimizer.real("warmup_epochs", 0.0, Range::at_least(0.0),
                                    "the rate rises linearly from 0 during the first so many epochs")) {
  Config section = optimizer.section("schedule");
  const std::span entries = learning_rate_schedules();
  schedule_ = chosen_entry(entries, section, "constant", "how the learning rate changes").make(section);
}

double LearningRate::at(double epoch, double epochs) const {
  const double warmup = epoch < warmup_epochs_ ? epoch / warmup_epochs_ : 1.0;
  return base_ * warmup * schedule_->factor(epoch, epochs);
}

}  // namespace hearsay

#include "sparsify/quantisers/sum_step.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "sparsify/magnitude.hpp"
#include "sparsify/search/positions.hpp"

namespace hearsay {
namespace {

constexpr double bits_of_integer = 1.3;                 // a sign, and magnitudes that are 1 as a rule
constexpr double least_share = 0.25, most_share = 2.0;  // of f₀
constexpr Iteration memory = 32;
constexpr double largest_integer = 127.0;  // of the dead zone's code

/// The fraction of values whose positions and integers take so many bits a value. In (0, 1/2]; rises with bits.
double fraction_for(double bits) {
  double low = 0.0, high = 0.5;
  for (int halving = 0; halving < 60; ++halving) {
    const double f = (low + high) / 2, entropy = -f * std::log2(f) - (1.0 - f) * std::log2(1.0 - f);
    (entropy + bits_of_integer * f > bits ? high : low) = f;
  }
  return high;
}

/// The largest step that is sent exactly and whose dead zone `magnitude` does not fall into.
float step_up_to(const StepRule& rule, float magnitude) {
  const float nearest = sent_step(static_cast<double>(magnitude) / rule.dead_zone);
  if (dead_zone(rule, nearest) <= magnitude) return nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 0x10000U);
}

/// What integers of this step leave of Σ |v|, beyond what they round.
struct Left {
  double in_dead_zone = 0.0, above_largest = 0.0;
};
Left left_by(const StepRule& rule, float step, std::span<const float> values) {
  const double zone = dead_zone(rule, step), most = largest_integer * step;
  Left left;
  for (const float value : values) {
    const double magnitude = std::abs(value);
    if (magnitude < zone)
      left.in_dead_zone += magnitude;
    else
      left.above_largest += std::max(0.0, magnitude - most);
  }
  return left;
}

/// The step that all of these values, none of them 0, can be counted in; where they are too far apart for that, between
/// the step of the smallest and that of the largest one that leaves little of their sum.
float step_for(const StepRule& rule, std::span<const float> values) {
  float least = std::abs(values.front()), largest = least;
  for (const float value : values) {
    least = std::min(least, std::abs(value));
    largest = std::max(largest, std::abs(value));
  }
  const float finest = step_up_to(rule, least);
  float step = std::max(finest, sent_step(static_cast<double>(largest) / largest_integer)), best = step;
  if (step == finest) return finest;
  for (double least_left = HUGE_VAL;;) {
    const Left left = left_by(rule, step, values);
    if (left.above_largest >= least_left) return best;  // more and more of it below
    if (left.in_dead_zone + left.above_largest < least_left) {
      best = step;
      least_left = left.in_dead_zone + left.above_largest;
    }
    const float half = std::max(finest, sent_step(step / 2.0));
    if (half == step) return best;
    step = half;
  }
}

}  // namespace

SumStep::SumStep(const StepRule& rule)
    : rule_(rule), first_fraction_(rule.bits ? fraction_for(*rule.bits) : 1.0), fraction_(first_fraction_) {}

std::size_t SumStep::usual_news(const StepRule& rule, std::size_t n) {
  return rule.bits ? kept_count(fraction_for(*rule.bits), n) : n;
}

std::size_t SumStep::most_news(const StepRule& rule, std::size_t n) {
  return rule.bits ? kept_count(std::min(1.0, most_share * fraction_for(*rule.bits)), n) : n;
}

void SumStep::adds(std::span<const float> values, float scale) {
  if (rule_.bits || rule_.fixed || values.empty()) return;
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  rounds_ = std::min(rounds_ + 1, memory);
  mean_square_ +=
      (scale * scale * sum / static_cast<double>(values.size()) - mean_square_) / static_cast<double>(rounds_);
}

void SumStep::select(std::span<const float> owed, std::vector<std::uint32_t>& news) {
  news.clear();
  step_ = 0.0F;
  if (rule_.bits) {
    step_ = of_budget(owed);
  } else {
    require_finite(owed);
    step_ = sent_step(rule_.fixed.value_or(rule_.horizon * std::sqrt(mean_square_)));
  }
  if (step_ == 0.0F) return;
  collect_from(magnitude_bits(dead_zone(rule_, step_)), owed, news);
  keep_largest(owed, most_news(owed.size()), news);
}

float SumStep::of_budget(std::span<const float> owed) {
  correct();
  const std::size_t k = std::min(kept_count(fraction_, owed.size()), most_news(owed.size()));
  select_.largest(owed, k, places_);
  candidates_.clear();
  for (const std::uint32_t i : places_)
    if (owed[i] != 0.0F) candidates_.push_back(owed[i]);
  if (candidates_.empty()) return 0.0F;
  // The smallest of few values says nothing about what is worth an integer.
  if (candidates_.size() < k) return step_for(rule_, candidates_);
  return step_up_to(rule_, std::abs(*std::ranges::min_element(candidates_, {}, [](float v) { return std::abs(v); })));
}

float SumStep::length_for(std::span<const float> values) const {
  return rule_.bits && !values.empty() ? step_for(rule_, values) : step_;
}

void SumStep::correct() {
  if (bytes_ > 0.0)
    fraction_ = std::clamp(fraction_ * *rule_.bits * values_ / (8.0 * bytes_), least_share * first_fraction_,
                           std::min(1.0, most_share * first_fraction_));
  bytes_ = values_ = 0.0;
}

void SumStep::keep_largest(std::span<const float> owed, std::size_t most, std::vector<std::uint32_t>& news) {
  if (news.size() <= most) return;
  candidates_.clear();
  for (const std::uint32_t i : news) candidates_.push_back(owed[i]);
  select_.largest(candidates_, most, places_);
  for (std::size_t i = 0; i < most; ++i) news[i] = news[places_[i]];
  news.resize(most);
}

void SumStep::sent(std::size_t bytes, std::size_t n) {
  bytes_ += static_cast<double>(bytes);
  values_ += static_cast<double>(n);
}

void SumStep::state(Archive& archive) {
  archive.value("fraction of values that is news", fraction_);
  if (!(fraction_ > 0.0 && fraction_ <= 1.0))
    archive.refuse("fraction of values that is news", "is " + std::to_string(fraction_));
  archive.value("bytes of the last messages", bytes_);
  archive.value("values of the last messages", values_);
  archive.value("mean square of a round", mean_square_);
  archive.value("rounds of the mean square", rounds_);
  if (!(mean_square_ >= 0.0 && bytes_ >= 0.0 && values_ >= 0.0))
    archive.refuse("mean square of a round", "or a count of bytes or values is below 0 or no number");
  if (rounds_ < 0) archive.refuse("rounds of the mean square", "are " + std::to_string(rounds_));
}

}  // namespace hearsay

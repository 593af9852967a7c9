#include "runtime/training/model/objective.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <stdexcept>

#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr std::int64_t not_learnt = -1;

/// (…, C) → (N, C)
torch::Tensor rows(const torch::Tensor& logits) { return logits.dim() > 2 ? logits.flatten(0, -2) : logits; }

torch::Tensor smoothed(const torch::Tensor& logits, const torch::Tensor& targets, double smoothing) {
  return torch::cross_entropy_loss(rows(logits), targets.flatten(), {}, torch::Reduction::Mean, not_learnt, smoothing);
}

torch::Tensor mean_square(const torch::Tensor& output, const torch::Tensor& targets) {
  return torch::mse_loss(output, targets);
}

/// How many targets are among the five largest logits.
torch::Tensor count_top5(const torch::Tensor& logits, const torch::Tensor& targets) {
  const torch::Tensor largest = std::get<1>(rows(logits).topk(std::min<std::int64_t>(5, logits.size(-1)), -1));
  return largest.eq(targets.flatten().unsqueeze(1)).sum();
}

std::string text_of(torch::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

[[noreturn]] void refuse(const torch::Tensor& output, const std::string& wanted) {
  throw ConfigError("model: its output has the shape " + text_of(output.sizes()) + ", but these data need " + wanted +
                    "; choose another model, or other data");
}

/// `wrapped`, for outputs that fit the targets.
OutputFunction for_logits(OutputFunction wrapped, std::int64_t classes) {
  return [wrapped = std::move(wrapped), classes](const torch::Tensor& output, const torch::Tensor& targets) {
    const auto wanted = targets.sizes();
    const bool fits = output.dim() == targets.dim() + 1 && output.sizes().slice(0, wanted.size()) == wanted &&
                      output.size(-1) == classes;
    if (!fits) refuse(output, text_of(wanted) + " logits of " + std::to_string(classes) + " classes");
    return wrapped(output, targets);
  };
}

OutputFunction for_numbers(OutputFunction wrapped) {
  return [wrapped = std::move(wrapped)](const torch::Tensor& output, const torch::Tensor& targets) {
    if (output.sizes() != targets.sizes()) refuse(output, text_of(targets.sizes()) + " numbers");
    return wrapped(output, targets);
  };
}

double perplexity_of(double mean) { return std::exp(mean); }
double bits_of(double mean) { return mean / std::numbers::ln2; }
double root_of(double mean) { return std::sqrt(mean); }

/// How a metric that a data set names is measured.
Measure measure_of(const Metric& metric, const TensorShape& targets) {
  const bool classes = targets.element == TensorShape::Element::classes;
  if (metric.name == "loss") return {metric, {}, nullptr};
  if (classes && metric.name == "accuracy") return {metric, for_logits(count_correct, targets.classes), nullptr};
  if (classes && metric.name == "top5_accuracy") return {metric, for_logits(count_top5, targets.classes), nullptr};
  if (classes && metric.name == "perplexity") return {metric, {}, perplexity_of};
  if (classes && metric.name.starts_with("bits_per_")) return {metric, {}, bits_of};
  if (!classes && metric.name == "rmse") return {metric, {}, root_of};
  throw std::logic_error("the metric '" + metric.name + "' does not go with these targets");
}

}  // namespace

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  return smoothed(logits, targets, 0.0);
}

torch::Tensor count_correct(const torch::Tensor& logits, const torch::Tensor& targets) {
  return rows(logits).argmax(1).eq(targets.flatten()).sum();
}

Score& Score::operator+=(const Score& other) {
  loss_sum += other.loss_sum;
  targets += other.targets;
  sums.resize(other.sums.size(), 0.0);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
  return *this;
}

std::vector<MetricValue> values_of(const Objective& objective, const Score& score) {
  std::vector<MetricValue> values;
  std::span<const double> left(score.sums);
  if (left.size() != objective.sums()) throw std::logic_error("a score of other measures");
  for (const Measure& measure : objective.measures) {
    const auto sums = left.first(measure.sums());
    left = left.subspan(sums.size());
    const double mean = sums.front() / score.targets;
    values.push_back({measure.metric, measure.writing              ? measure.writing->value(sums)
                                      : measure.of_mean != nullptr ? measure.of_mean(mean)
                                                                   : mean});
  }
  return values;
}

std::size_t Objective::sums() const {
  std::size_t count = 0;
  for (const Measure& measure : measures) count += measure.sums();
  return count;
}

Objective objective_for(const DataSet& data, double label_smoothing) {
  const TensorShape& targets = data.shape.targets;
  Objective objective{.loss = {}, .test_loss = {}, .measures = {}};
  if (targets.element == TensorShape::Element::classes) {
    objective.loss = for_logits(
        [label_smoothing](const torch::Tensor& logits, const torch::Tensor& classes) {
          return smoothed(logits, classes, label_smoothing);
        },
        targets.classes);
    if (label_smoothing > 0.0) objective.test_loss = for_logits(cross_entropy, targets.classes);
  } else {
    if (label_smoothing > 0.0)
      throw ConfigError("train.label_smoothing: the targets of '" + data.name +
                        "' are numbers; only classes and tokens can be smoothed: use 0");
    objective.loss = for_numbers(mean_square);
  }
  for (const Metric& metric : data.metrics) {
    const bool of_writing = data.writing && data.writing->metric().name == metric.name;
    objective.measures.push_back(of_writing ? Measure{.metric = metric, .sum = {}, .writing = data.writing}
                                            : measure_of(metric, targets));
  }
  return objective;
}

}  // namespace hearsay

#pragma once
// What says how good a model is on the test set: its name, and which of two numbers is the better one.
#include <string>
#include <utility>

namespace hearsay {

struct Metric {
  std::string name;              ///< the key in reports and the head in tables: "accuracy", "bits_per_character"
  bool higher_is_better = true;  ///< else the lower
  bool fraction = true;          ///< in [0, 1] and shown in per cent; else a plain number
  double worst_of(double a, double b) const { return (a < b) == higher_is_better ? a : b; }
};

struct MetricValue {
  Metric metric;
  double value = 0.0;
};

/// Part of the targets that the model ranks first.
inline Metric accuracy_metric() { return {.name = "accuracy"}; }
/// Part of the targets among the five that the model ranks first.
inline Metric top5_accuracy_metric() { return {.name = "top5_accuracy"}; }
/// What is minimised, without label smoothing: mean over targets, cross entropies in nats.
inline Metric loss_metric() { return {.name = "loss", .higher_is_better = false, .fraction = false}; }
/// exp(cross entropy): among how many equally likely targets the model wavers.
inline Metric perplexity_metric() { return {.name = "perplexity", .higher_is_better = false, .fraction = false}; }
/// Cross entropy / ln 2; `what`: "character", "byte", "word".
inline Metric bits_metric(const std::string& what) {
  return {.name = "bits_per_" + what, .higher_is_better = false, .fraction = false};
}
/// How good translations are, from 0 to 100: apps/datasets/text/bleu.hpp.
inline Metric bleu_metric() { return {.name = "bleu", .fraction = false}; }
/// √(mean square of output − target).
inline Metric rmse_metric() { return {.name = "rmse", .higher_is_better = false, .fraction = false}; }

}  // namespace hearsay

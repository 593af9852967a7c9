#pragma once
// What is minimised, and what a model is judged by: functions of its output and the targets.
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/data/examples.hpp"

namespace hearsay {

/// Examples and what should come out of the model for them: (B, …) each. Targets are classes (int64; negative ones
/// count nowhere) or numbers (float).
struct Batch {
  torch::Tensor inputs, targets;
};

/// Mean cross entropy, a scalar. Logits (…, C) with targets (…): (B, C) with (B), or (B, T, C) with (B, T), where every
/// token is an example.
torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets);
/// How many targets have the largest logit, a scalar. Shapes as above.
torch::Tensor count_correct(const torch::Tensor& logits, const torch::Tensor& targets);

using OutputFunction = std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& targets)>;

/// A metric as a sum over targets, of whose mean it is a function, or as sums of what a model writes: so batches and
/// ranks can be added.
struct Measure {
  Metric metric = accuracy_metric();
  OutputFunction sum = count_correct;           ///< a scalar; empty: the test loss, summed
  double (*of_mean)(double) = nullptr;          ///< of the mean over targets; nullptr: the mean itself
  std::shared_ptr<const Writing> writing = {};  ///< if any, nothing else counts
  std::size_t sums() const { return writing ? writing->sums() : 1; }
};

struct Objective {
  OutputFunction loss = cross_entropy;                      ///< a scalar: the mean over all targets
  OutputFunction test_loss{};                               ///< what of it counts on the test set; empty: `loss`
  std::vector<Measure> measures = std::vector<Measure>(1);  ///< tables and pictures show the first
  /// Numbers of a score: those of all measures.
  std::size_t sums() const;
};

/// What a model makes of a batch. Sums over targets, so that batches and ranks can be added.
struct Score {
  double loss_sum = 0.0, targets = 0.0;
  std::vector<double> sums{};  ///< those of each measure, one after the other
  Score& operator+=(const Score& other);
};

/// The numbers that the measures make of a score over at least one target.
std::vector<MetricValue> values_of(const Objective& objective, const Score& score);

/// Classes and tokens: cross entropy, in training with a part `label_smoothing` of every target spread evenly over all
/// classes (szegedy2016rethinking, section 7). Numbers: mean square error. The measures are those that the data name.
/// Throws ConfigError for smoothed numbers, std::logic_error for a metric that these targets cannot have. Each of
/// the functions throws ConfigError if the output's shape does not fit the targets'.
Objective objective_for(const DataSet& data, double label_smoothing);

}  // namespace hearsay

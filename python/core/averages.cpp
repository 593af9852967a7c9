// What a member finds out about all ranks together, between two steps: their mean model, and how good it is.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "python/core/member.hpp"
#include "runtime/data/metric.hpp"

namespace hearsay::python {
namespace {

constexpr double unknown_average = std::numeric_limits<double>::quiet_NaN();

}  // namespace

/// Where ranks serve a part of the model each, that is the model, and no mean.
double Member::average(std::span<double> more, std::vector<float>& mean) {
  if (!together_.same_on_all(static_cast<double>(more.size())))  // the sums would wait for each other
    throw ConfigError("the model has " + std::to_string(more.size()) + " values in float buffers on rank " +
                      std::to_string(rank()) +
                      ", and others on other ranks, which cannot be averaged; register the same buffers on every rank");
  participant_.service().await_all();
  const std::span<const float> x = replica_->values.span();
  mean.assign(x.begin(), x.end());
  participant_.communication().run([&] {
    communicator_->sum(mean);
    communicator_->sum(more);
  });
  for (float& value : mean) value /= static_cast<float>(together_.ranks());
  for (double& value : more) value /= together_.ranks();
  if (participant_.service().is_sharded()) std::ranges::copy(participant_.service().servers_model(), mean.begin());
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(mean[i]);
    squares += difference * difference;
  }
  note_consensus(squares);
  return consensus_distance_;
}

/// `squares`: ‖x_i − mean‖² of this rank.
void Member::note_consensus(double squares) {
  participant_.communication().run([&] { communicator_->sum({&squares, 1}); });
  if (!std::isfinite(squares)) {
    together_.require_finite(
        [this] { may_die() ? participant_.finite().require_here() : participant_.finite().require(); });
    throw DivergenceError("the models of the ranks, each of them finite, are too large to be averaged");
  }
  consensus_distance_ = std::sqrt(squares / together_.ranks());
}

/// The root mean square over ranks of ‖x_i − mean‖, piece by piece: without a block for the mean, here or in MPI.
void Member::measure_consensus() {
  constexpr std::size_t piece = std::size_t{1} << 16;
  const std::span<const float> x = replica_->values.span();
  double squares = 0.0;
  std::vector<float> mean;
  for (std::size_t begin = 0; begin < x.size(); begin += piece) {
    const std::span<const float> own = x.subspan(begin, std::min(piece, x.size() - begin));
    mean.assign(own.begin(), own.end());
    participant_.communication().run([&] { communicator_->sum(mean); });
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double difference =
          static_cast<double>(own[i]) - static_cast<double>(mean[i] / static_cast<float>(together_.ranks()));
      squares += difference * difference;
    }
  }
  note_consensus(squares);
}

/// On all ranks alike, so that none waits for one whose program has caught it.
void Member::require_same_metrics(std::span<const Score> scores, bool shared) {
  std::string names = shared ? "of examples of its own: " : "";
  for (const Score& score : scores)
    names += score.metric.name + (score.metric.higher_is_better ? " (up) " : " (down) ");
  const auto hash = static_cast<double>(xxh3(std::as_bytes(std::span(names))) >> 11);  // 53 bits
  std::vector<double> least{hash}, most{hash};
  participant_.communication().run([&] {
    communicator_->minimum(least);
    communicator_->maximum(most);
  });
  if (least[0] != most[0])
    throw ConfigError(
        "member.evaluate: score() gives other metrics on some ranks than on rank " + std::to_string(rank()) + " (" +
        names + "); return the same names in the same order on every rank, all with a number of examples or none");
}

std::vector<RunQuality> Member::evaluated(std::span<const Score> scores, std::optional<double> examples) {
  require_same_metrics(scores, examples.has_value());
  const double weight = examples.value_or(together_.is_first() ? 1.0 : 0.0);
  const bool has_own = !examples || *examples > 0.0;
  std::vector<double> sums, worst;
  for (const auto& [metric, of_mean, own] : scores) {
    sums.push_back(weight > 0.0 ? weight * of_mean : 0.0);
    sums.push_back(has_own ? own : 0.0);
    worst.push_back(!has_own ? std::numeric_limits<double>::infinity() : metric.higher_is_better ? own : -own);
  }
  sums.push_back(weight);
  sums.push_back(has_own ? 1.0 : 0.0);
  participant_.communication().run([&] {
    communicator_->sum(sums);
    communicator_->minimum(worst);
  });
  const double weights = sums[sums.size() - 2], judged = sums.back();
  if (!(weights > 0.0)) throw ConfigError("member.evaluate: score() has seen no example on any rank");
  qualities_.clear();
  for (std::size_t i = 0; i < scores.size(); ++i)
    qualities_.push_back({.metric = scores[i].metric,
                          .mean_model = sums[2 * i] / weights,
                          .rank_worst = scores[i].metric.higher_is_better ? worst[i] : -worst[i],
                          .rank_mean = sums[2 * i + 1] / judged});
  require_finite_loss();
  return qualities_;
}

/// The parameters may be numbers, and what they make of the test set none. All ranks have the same loss.
void Member::require_finite_loss() const {
  const auto loss =
      std::ranges::find(qualities_, loss_metric().name, [](const RunQuality& of) { return of.metric.name; });
  if (loss == qualities_.end() || std::isfinite(loss->mean_model)) return;
  throw DivergenceError("the averaged model diverged after " + std::to_string(place_.done) +
                        " steps: score() gives it a loss that is " +
                        (std::isnan(loss->mean_model) ? "not a number" : "infinite") + "; lower the learning rate");
}

/// Once, however often the call was begun.
void Member::note_evaluation(double seconds) {
  const auto length = std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  evaluate_from(participant_.ledger().now() - length);
  if (reports()) write_evaluation();
}

void Member::write_evaluation() {
  EvaluationRecord record{.iteration = place_.done,
                          .epoch = epoch(place_.done),
                          .time_s = seconds(),
                          .loss_mean_model = unknown_average,
                          .consensus_distance = consensus_distance_};
  for (const RunQuality& quality : qualities_) {
    record.metrics.push_back({quality.metric, quality.mean_model});
    if (quality.metric.name == loss_metric().name) record.loss_mean_model = quality.mean_model;
  }
  diary_->evaluation(record);
}

/// The run's time is from its first step; what is left of it without evaluations is that of the steps.
void Member::evaluate_from(TimePoint start) {
  if (first_ == TimePoint{}) return;
  last_ = participant_.ledger().now();
  participant_.ledger().spend({.phase = Phase::evaluate, .from = start, .to = last_});
}

}  // namespace hearsay::python

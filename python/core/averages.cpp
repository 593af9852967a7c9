// What a member finds out about all ranks together, between two steps: their mean model, and how good it is.
#include <algorithm>
#include <cmath>

#include "python/core/member.hpp"
#include "runtime/data/metric.hpp"

namespace hearsay::python {

void Member::broadcast(std::span<std::byte> bytes) {
  participant_.engine().run([&] { communicator_.broadcast(bytes, 0); });
}

double Member::average(std::span<const float> more, std::vector<float>& mean) {
  const std::span<const float> x = replica_->values.span();
  mean.assign(x.begin(), x.end());
  mean.insert(mean.end(), more.begin(), more.end());
  participant_.engine().run([&] { communicator_.sum(mean); });
  for (float& value : mean) value /= static_cast<float>(ranks());
  std::vector<double> squares(1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(mean[i]);
    squares[0] += difference * difference;
  }
  participant_.engine().run([&] { communicator_.sum(squares); });
  return consensus_distance_ = std::sqrt(squares[0] / ranks());
}

/// The root mean square over ranks of ‖x_i − mean‖, piece by piece: without a block for the mean, here or in MPI.
void Member::measure_consensus() {
  constexpr std::size_t piece = std::size_t{1} << 16;
  const std::span<const float> x = replica_->values.span();
  std::vector<double> squares(1);
  std::vector<float> mean;
  for (std::size_t begin = 0; begin < x.size(); begin += piece) {
    const std::span<const float> own = x.subspan(begin, std::min(piece, x.size() - begin));
    mean.assign(own.begin(), own.end());
    participant_.engine().run([&] { communicator_.sum(mean); });
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double difference =
          static_cast<double>(own[i]) - static_cast<double>(mean[i] / static_cast<float>(ranks()));
      squares[0] += difference * difference;
    }
  }
  participant_.engine().run([&] { communicator_.sum(squares); });
  consensus_distance_ = std::sqrt(squares[0] / ranks());
}

Evaluation Member::evaluated(Evaluation evaluation, double seconds_before) {
  const TimePoint start = participant_.ledger().now();
  std::vector<double> least{evaluation.own_accuracy}, sum = least;
  std::vector<double> of_mean{evaluation.accuracy, evaluation.loss};
  participant_.engine().run([&] {
    communicator_.minimum(least);
    communicator_.sum(sum);
    communicator_.broadcast(std::as_writable_bytes(std::span(of_mean)), 0);
  });
  evaluation = {.accuracy = of_mean[0],
                .loss = of_mean[1],
                .own_accuracy = evaluation.own_accuracy,
                .accuracy_min = least[0],
                .accuracy_mean = sum[0] / ranks()};
  evaluation_ = evaluation;
  evaluate_from(start - std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds_before)));
  if (rank() == 0) {
    const EvaluationRecord record{.iteration = done_,
                                  .epoch = epoch(done_),
                                  .time_s = seconds(),
                                  .loss_mean_model = evaluation.loss,
                                  .consensus_distance = consensus_distance_,
                                  .metrics = {{accuracy_metric(), evaluation.accuracy}}};
    diary_->evaluation(record);
  }
  return evaluation;
}

/// The run's time is from its first step; what is left of it without evaluations is that of the steps.
void Member::evaluate_from(TimePoint start) {
  if (first_ == TimePoint{}) return;
  last_ = participant_.ledger().now();
  participant_.ledger().spend({.phase = Phase::evaluate, .from = start, .to = last_});
}

}  // namespace hearsay::python

#include "runtime/training/run_log.hpp"

#include <algorithm>

namespace hearsay {

void RunLog::start_clock(std::optional<std::chrono::nanoseconds> since) {
  start_ = since.value_or(sources_.participant.ledger().now());
  last_progress_ = std::chrono::steady_clock::now();
  sources_.diary.start_clock();
}

double RunLog::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(sources_.participant.ledger().now() - start_).count();
}

Progression RunLog::progression(Iteration done, double job_done) const {
  const RunLength& length = sources_.length;
  return {.iterations = done,
          .job_iterations = job_done,
          .epoch = length.epoch(job_done),
          .time_s = seconds(),
          .learning_rate =
              sources_.plan.parts().learning_rate->at(length.epoch(job_done - 1), length.epoch(length.iterations))};
}

void RunLog::iteration(Iteration k, double job_done, double loss, bool reports) {
  constexpr std::chrono::milliseconds between_progress{250};
  const bool last = job_done >= static_cast<double>(sources_.length.iterations);
  sources_.diary.iteration(progression(k + 1, job_done), loss, last);
  if (!sources_.options.progress || !reports) return;
  if (const auto now = std::chrono::steady_clock::now(); last || now - last_progress_ >= between_progress) {
    last_progress_ = now;
    report_progress(k, job_done, loss);
  }
}

void RunLog::last_iteration(Iteration k, double job_done) { sources_.diary.record(progression(k + 1, job_done)); }

void RunLog::report_progress(Iteration k, double job_done, double loss) {
  const RunLength& length = sources_.length;
  Participant& participant = sources_.participant;
  const LedgerTotals totals = participant.ledger().totals();
  const auto sends = participant.edges().topology().neighbourhood(participant.edges().rank()).sends();
  const bool neighbours = sources_.plan.parts().exchange->laws().along_graph;
  const double possible =
      neighbours ? static_cast<double>(k + 1) * static_cast<double>(participant.replica().layout.count() * sends) : 0.0;
  const double rate = job_done / std::max(seconds(), 1e-9);  // of all parts of the run
  sources_.options.progress(
      {.iteration = std::min(static_cast<Iteration>(job_done), length.iterations),
       .iterations = length.iterations,
       .epoch = std::min(length.epoch(job_done), length.epoch(length.iterations)),
       .epochs = length.epoch(length.iterations),
       .loss = loss,
       .messages_fraction = possible > 0.0 ? static_cast<double>(totals.messages) / possible : 0.0,
       .megabytes_sent = 1e-6 * static_cast<double>(totals.bytes()),
       .iterations_per_second = rate,
       .seconds_left = std::max(0.0, static_cast<double>(length.iterations) - job_done) / rate});
}

void RunLog::evaluation(double job_done, double time_s, const std::vector<MetricValue>& metrics, double loss,
                        double consensus_distance) {
  const EvaluationRecord record{.iteration = static_cast<Iteration>(job_done),
                                .epoch = sources_.length.epoch(job_done),
                                .time_s = time_s,
                                .loss_mean_model = loss,
                                .consensus_distance = consensus_distance,
                                .metrics = metrics};
  sources_.diary.evaluation(record);
  if (sources_.options.evaluated) sources_.options.evaluated(record);
}

Summary RunLog::summary(const std::string& status, double job_done, bool writes) const {
  return sources_.diary.summary(status, {.job_iterations = job_done, .epoch = sources_.length.epoch(job_done)}, writes);
}

void RunLog::state(Archive& archive) {
  if (!archive.loads()) {
    seconds_before_ = seconds();
    start_ = sources_.participant.ledger().now();
  }
  archive.value("seconds of training", seconds_before_);
  if (archive.loads() && !(seconds_before_ >= 0.0))
    archive.refuse("seconds of training", "are " + std::to_string(seconds_before_));
  sources_.diary.state(archive);
}

}  // namespace hearsay

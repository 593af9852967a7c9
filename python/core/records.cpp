// What a member writes into its run folder: a line every few steps, and at the end the summary.
#include <cmath>
#include <stdexcept>

#include "python/core/member.hpp"
#include "runtime/data/metric.hpp"

namespace hearsay::python {
namespace {

double seconds_between(TimePoint from, TimePoint to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

double Member::seconds() const { return seconds_between(first_, last_); }

Progression Member::progression() const {
  const Iteration done = place_.done;
  return {.iterations = own_steps(),
          .job_iterations = static_cast<double>(done),
          .epoch = epoch(done),
          .time_s = seconds(),
          .learning_rate = learning_rate_};
}

/// Asynchronous ranks may have made different numbers of steps. Calls MPI.
void Member::note_steps_of_all(Summary& summary) {
  std::vector<double> least{static_cast<double>(place_.done)}, most = least;
  communicator_->minimum(least);
  communicator_->maximum(most);
  if (least[0] != most[0])
    summary.message += (summary.message.empty() ? "the ranks made " : "; the ranks made ") +
                       std::to_string(static_cast<Iteration>(least[0])) + " to " +
                       std::to_string(static_cast<Iteration>(most[0])) + " steps";
}

/// The text of the rank that reports. Calls MPI.
std::string Member::shared_with_all(std::string text) {
  std::uint64_t length = text.size();
  communicator_->broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
  text.resize(length);
  communicator_->broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::string Member::summary() {
  together_.settle();
  diary_->record(progression());
  diary_->write_trace();
  measure_consensus();
  const Survivors& survivors = together_.survivors();
  Summary summary = diary_->summary("finished", progression(), together_.is_first());
  summary.message = survivors.parts_text();
  const TimePoint now = participant_.ledger().now();
  const double began_s = survivors.began_s(first_ == TimePoint{} ? 0.0 : seconds_between(first_, now));
  summary.ranks_lost = survivors.lost(began_s);
  summary.ranks_joined = survivors.joined(began_s);
  summary.consensus_distance = consensus_distance_;
  for (const RunQuality& quality : qualities_) {
    summary.take(quality);
    if (quality.metric.name == loss_metric().name) summary.loss_mean_model = quality.mean_model;
  }
  const RankResult result{.times = {.wall_s = seconds(), .evaluate_s = participant_.ledger().seconds(Phase::evaluate)},
                          .iterations = own_steps(),
                          .replica_hash = replica_hash(),
                          .shares = measures_of(participant_.exchange()).shares(),
                          .rank = rank()};
  std::string text;
  participant_.communication().run([&] {
    note_steps_of_all(summary);
    diary_->finish(summary, *communicator_, result, together_.is_first());
    if (together_.is_first()) text = summary_text(summary);
    text = shared_with_all(std::move(text));
  });
  return text;
}

void Member::leave() {
  if (reports()) diary_->take_over_folder();
  together_.leave();
  if (may_die()) diary_->give_back_folder();
}

void Member::write_ending(const std::string& status, const std::string& message) {
  diary_->record(progression());
  diary_->write_trace();
  Summary summary = diary_->summary(status, progression(), true);
  summary.message = message;
  diary_->end(summary);
}

}  // namespace hearsay::python

#include "runtime/training/evaluations.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/text/number.hpp"

namespace hearsay {
void Evaluations::keep_snapshots() {
  if (!run_.lockstep()) snapshots_.emplace(model_, run_.plan.report().directory, run_.process, run_.id);
}

void Evaluations::remove_snapshots_of_dead() const {
  for (const LostRank& lost : membership_.survivors.lost(0.0))
    Snapshots::remove_file(run_.plan.report().directory, lost.process);
}

void Evaluations::begin_after_iterations(Iteration done) {
  if (period() > 0) done_ = done / period();
}

void Evaluations::join(double job_done) {
  keep_snapshots();
  if (period() > 0) done_ = std::max(done_, static_cast<std::int64_t>(job_done) / period());
  joined_after_ = done_;
}

void Evaluations::after(double job_done) {
  const Iteration every = period();
  if (every == 0) return;
  for (Iteration due = (done_ + 1) * every; static_cast<double>(due) <= job_done && due < run_.length.iterations;
       due = (done_ + 1) * every) {
    ++done_;
    if (snapshots_) {
      leave_snapshot(static_cast<double>(due));
    } else {
      evaluate(static_cast<double>(due), membership_.record.log->seconds());
      require_finite_loss(static_cast<double>(due));
    }
  }
}

// A rank that stopped early has left fewer than others.
void Evaluations::of_snapshots(double job_done) {
  if (!snapshots_ || period() == 0) return;
  if (last_snapshot_) {  // of an attempt before this one, which may have ended with another model
    if (snapshots_->taken().size() > *last_snapshot_) snapshots_->load(*last_snapshot_);
  } else {
    last_snapshot_ = snapshots_->taken().size();
    leave_snapshot(job_done);
  }
  const std::size_t last = *last_snapshot_;
  const bool whole = snapshots_->taken().size() > last;
  std::vector<double> common{whole ? static_cast<double>(missed() + last) : 0.0};
  std::vector<double> lost{static_cast<double>(std::max(snapshots_->lost(), snapshots_evaluated_))};
  std::vector<double> missed_by(
      static_cast<std::size_t>(membership_.participant.edges().topology().ranks() + run_.spares()));
  missed_by[static_cast<std::size_t>(run_.process)] = static_cast<double>(missed());
  membership_.participant.communication().run([&] {
    membership_.communicator->minimum(common);
    membership_.communicator->maximum(lost);
    if (run_.spares() > 0) membership_.communicator->maximum(missed_by);
  });
  if (snapshots_->lost() > 0 && run_.process == 0 && run_.options.warned)
    run_.options.warned("the models before the resumption were evaluated and removed: they are not evaluated again");
  for (auto i = static_cast<std::size_t>(lost[0]); i < static_cast<std::size_t>(common[0]); ++i) {
    membership_.survivors.among(
        [&](int process) { return missed_by[static_cast<std::size_t>(process)] <= static_cast<double>(i); },
        [&] { evaluate_snapshot(i - missed()); });
    snapshots_evaluated_ = i + 1;
  }
  if (common[0] > 0.0) snapshots_->load(last);
}

/// Counts the models that the others had left before this process came.
std::size_t Evaluations::missed() const {
  return run_.process == membership_.vertex() ? 0 : static_cast<std::size_t>(joined_after_ - before_);
}

/// With those who have one of that time.
void Evaluations::evaluate_snapshot(std::size_t i) {
  const Snapshots::Taken& taken = snapshots_->taken()[i];
  std::vector<double> when{taken.time_s};
  membership_.participant.communication().run([&] { membership_.communicator->maximum(when); });
  snapshots_->load(i);
  take_from_servers();
  evaluate(taken.job_iterations, when[0]);
}

/// Where ranks serve a part of the model each, that is the model: what they hold of other parts is a little older.
/// Collective.
void Evaluations::take_from_servers() {
  if (!membership_.participant.service().is_sharded() || !snapshots_) return;
  Parameters& replica = model_.replica();
  const std::vector<float> x = membership_.participant.service().servers_model();
  replica.device->put(std::as_bytes(std::span(x)), replica.values.span());
}

/// Where one could not be written, none follows: the i-th is of the same time on all ranks.
void Evaluations::leave_snapshot(double job_iterations) {
  if (snapshots_over_) return;
  snapshots_over_ = true;
  membership_.record.diary.write([&] {
    snapshots_->leave({.job_iterations = job_iterations, .time_s = membership_.record.log->seconds()});
    snapshots_over_ = false;
  });
}

void Evaluations::at_end(double job_done, double time_s) {
  take_from_servers();
  evaluate(job_done, time_s);
}

/// The parameters may be numbers, and what they make of the test set none. All who evaluate have the same loss, and
/// throw alike.
void Evaluations::require_finite_loss(double job_done) const {
  const double loss = mean_model_.loss;
  if (std::isfinite(loss)) return;
  evaluator_.require_finite_inputs();
  const std::string remedy = "lower optimizer.learning_rate, or exchange.mixing.gamma if the rule has one";
  throw DivergenceError("the averaged model diverged at iteration " + std::to_string(static_cast<Iteration>(job_done)) +
                            ": its loss on the test set is " + (std::isnan(loss) ? "not a number" : "infinite"),
                        DivergenceError::Place::said, {remedy, remedy});
}

void Evaluations::evaluate(double job_done, double time_s) {
  membership_.participant.communication().flush();  // in a simulation nobody sends while a rank is in a collective
  mean_model_ = evaluator_.mean_model();
  if (!std::isfinite(mean_model_.consensus_distance)) membership_.participant.finite().require();
  if (!membership_.reports()) return;
  watch_distance(job_done);
  membership_.record.log->evaluation(job_done, time_s, mean_model_.metrics, mean_model_.loss,
                                     mean_model_.consensus_distance);
}

/// Ranks that are further apart than their mean is from 0 have no model in common, and a distance that has come so far
/// grows: said once, before numbers overflow.
void Evaluations::watch_distance(double job_done) {
  const auto& [metrics, loss, distance, norm] = mean_model_;
  if (warned_of_distance_ || !run_.options.warned || !(distance > norm)) return;
  warned_of_distance_ = true;
  run_.options.warned("at iteration " + std::to_string(static_cast<Iteration>(job_done)) + " ranks are " +
                      number_text(distance, 3) + " apart, and the norm of their mean model is " + number_text(norm, 3) +
                      ": mixing does not hold them together, and numbers may overflow; lower optimizer.learning_rate, "
                      "or exchange.correction.strength or exchange.mixing.gamma if there is one (--dry-run says which "
                      "steps are stable)");
}

}  // namespace hearsay

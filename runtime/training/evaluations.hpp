#pragma once
// When the averaged model of a run is evaluated. Private to sessions.
//   lockstep       between two iterations: every rank is there
//   asynchronous   every rank leaves its model behind, and they are evaluated together when training is over: nobody
//                  waits (model/snapshots.hpp)
#include <cstdint>
#include <optional>

#include "base/state/archive.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "runtime/training/model/snapshots.hpp"
#include "runtime/training/rank.hpp"

namespace hearsay {

class Evaluations {
 public:
  /// All must outlive it.
  Evaluations(const Run& run, Model& model, Membership& membership, Evaluator& evaluator)
      : run_(run), model_(model), membership_(membership), evaluator_(evaluator) {}

  /// Asynchronous ranks, before training: makes the file of the models that they leave.
  void keep_snapshots();
  /// How many the job has had so far, the one at its end not counted.
  std::int64_t done() const { return done_; }
  /// Where there are spares: this part of the run begins after so many.
  void begin_after(std::int64_t done) { done_ = before_ = done; }
  /// It begins after those that were due in so many iterations.
  void begin_after_iterations(Iteration done);
  /// A spare takes a dead rank's vertex after `job_done`: those that were due until then are others'.
  void join(double job_done);

  /// Makes the evaluations that are due after so much; those at the end are made by `at_end`.
  void after(double job_done);
  /// After training, collective: evaluates the models that asynchronous ranks have left. Leaves the model as it is.
  /// `job_done`: as far as this rank knows.
  void of_snapshots(double job_done);
  /// After it, collective: the model at the end.
  void at_end(double job_done, double time_s);
  /// Throws DivergenceError if the loss of the model that was evaluated last is not finite; DataError, if the test set
  /// is why.
  void require_finite_loss(double job_done) const;
  /// The last evaluation of the averaged model.
  const Evaluator::MeanModel& mean_model() const { return mean_model_; }

  /// State for checkpoints: how many there were, and the models that were left.
  void count_state(Archive& archive) { archive.value("evaluations", done_); }
  void snapshots_state(Archive& archive) {
    if (snapshots_) snapshots_->state(archive);
  }
  /// The models that were left are not needed any more; `remove`: now, else when this goes.
  void forget_snapshots() {
    if (snapshots_) snapshots_->keep_file(false);
  }
  void remove_snapshots() { snapshots_.reset(); }
  /// Removes the models that the dead have left. By the rank that reports.
  void remove_snapshots_of_dead() const;

 private:
  Iteration period() const { return run_.plan.parts().evaluate_every_epochs * run_.length.iterations_per_epoch; }
  void evaluate(double job_done, double time_s);
  void leave_snapshot(double job_iterations);
  void evaluate_snapshot(std::size_t i);
  void watch_distance(double job_done);
  std::size_t missed() const;
  void take_from_servers();

  const Run& run_;
  Model& model_;
  Membership& membership_;
  Evaluator& evaluator_;
  std::optional<Snapshots> snapshots_;  // asynchronous ranks only
  bool snapshots_over_ = false;
  std::optional<std::size_t> last_snapshot_{};  // the model at the end
  std::size_t snapshots_evaluated_ = 0;
  std::int64_t done_ = 0;          // during training
  std::int64_t before_ = 0;        // where there are spares: when this part of the run began
  std::int64_t joined_after_ = 0;  // when a spare took its vertex
  Evaluator::MeanModel mean_model_{};
  bool warned_of_distance_ = false;
};

}  // namespace hearsay

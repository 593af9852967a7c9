#pragma once
// When the averaged model of a run is evaluated. Private to sessions.
//   lockstep       between two iterations: every rank is there
//   asynchronous   every rank leaves its model behind, and they are evaluated together when training is over: nobody
//                  waits (model/snapshots.hpp)
#include <cstdint>
#include <optional>

#include "base/state/archive.hpp"
#include "runtime/training/model/snapshots.hpp"
#include "runtime/training/rank.hpp"

namespace hearsay {

class Evaluations {
 public:
  explicit Evaluations(TrainingRank& rank) : rank_(rank) {}

  /// Of asynchronous ranks, before training: makes the file of the models that they leave.
  void keep_snapshots();
  /// How many the job has had so far, the one at its end not counted.
  std::int64_t done() const { return done_; }
  /// Where there are spares: this part of the run begins behind so many.
  void begin_behind(std::int64_t done) { done_ = before_ = done; }
  /// Behind those that were due in so many iterations.
  void begin_behind_iterations(Iteration done);
  /// Of a spare that takes a place now: those that were due meanwhile are others'.
  void join();

  /// What is due now that the job has done so much. What is due at the end is evaluated there.
  void after(double job_done);
  /// Behind training, collective: what asynchronous ranks have left on their way. Leaves the model as it is.
  void of_snapshots();
  /// Behind it, collective: the model at the end.
  void at_end(double job_done, double time_s);
  /// The last evaluation of the averaged model.
  const Evaluator::MeanModel& mean_model() const { return mean_model_; }

  /// What a checkpoint keeps of them: how many there were, and the models that were left.
  void count_state(Archive& archive) { archive.value("evaluations", done_); }
  void snapshots_state(Archive& archive) {
    if (snapshots_) snapshots_->state(archive);
  }
  /// The models that were left are not needed any more; `remove`: now, else when this goes.
  void forget_snapshots() {
    if (snapshots_) snapshots_->keep_file(false);
  }
  void remove_snapshots() { snapshots_.reset(); }
  /// What the dead have left of theirs. By the rank that reports.
  void remove_snapshots_of_dead() const;

 private:
  Iteration period() const { return rank_.plan.parts().evaluate_every_epochs * rank_.length.iterations_per_epoch; }
  void evaluate(double job_done, double time_s);
  void leave_snapshot(double job_iterations);
  void evaluate_snapshot(std::size_t i);
  std::size_t missed() const;
  void take_from_servers();

  TrainingRank& rank_;
  std::optional<Snapshots> snapshots_;  // asynchronous ranks only
  bool snapshots_over_ = false;
  std::optional<std::size_t> last_snapshot_{};  // the model at the end
  std::size_t snapshots_evaluated_ = 0;
  std::int64_t done_ = 0;           // during training
  std::int64_t before_ = 0;         // where there are spares: when this part of the run began
  std::int64_t joined_behind_ = 0;  // of a spare: when it took a place
  Evaluator::MeanModel mean_model_{};
};

}  // namespace hearsay

#pragma once
// How a run ends on one rank: finished, stopped by a signal, diverged, or as a spare that nobody has needed. Private to
// sessions.
#include <functional>

#include "base/error.hpp"
#include "runtime/report/totals.hpp"
#include "runtime/training/checkpoints.hpp"
#include "runtime/training/evaluations.hpp"
#include "runtime/training/rank.hpp"

namespace hearsay {

class Endings {
 public:
  /// All must outlive it.
  Endings(const Run& run, Learner& learner, Membership& membership, Evaluator& evaluator, Evaluations& evaluations,
          Checkpoints& checkpoints)
      : run_(run),
        learner_(learner),
        membership_(membership),
        evaluator_(evaluator),
        evaluations_(evaluations),
        checkpoints_(checkpoints) {}

  /// The last iteration is done: what the report says of time ends here.
  void note_times();
  /// The model is evaluated and saved, the report written. Collective. Where ranks may die it may not return: the
  /// program is told, and ends the process (TrainOptions::survived).
  Summary finished();
  /// Ends a spare that nobody has needed, or that has come too late. Throws Stopped if a signal has ended its wait.
  Summary unused();
  struct Stop {
    int signal = 0;         ///< that ranks have agreed to end at; 0: each has received its own
    bool together = false;  ///< all ranks have left training after the same iteration
    bool in_order = false;  ///< this one between two iterations
  };
  /// Saves what is worth most, reports, and throws Stopped.
  [[noreturn]] void stopped(const Stop& stop);
  /// Reports, and throws the error that is being handled again.
  [[noreturn]] void diverged(const DivergenceError& error);

 private:
  Summary finish();
  Summary finish_alive();
  void settle();
  double all_done();
  Summary summary_of_run(double job_done);
  RankResult result() const;
  bool all_come();
  static bool nobody_dies(const std::function<void()>& work);

  const Run& run_;
  Learner& learner_;
  Membership& membership_;
  Evaluator& evaluator_;
  Evaluations& evaluations_;
  Checkpoints& checkpoints_;
  RunTimes times_{};
};

}  // namespace hearsay

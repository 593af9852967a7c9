#pragma once
// When a rank's checkpoints are due, what is in them, and how a run goes on from one. Private to sessions.
//   lockstep                  after the same iteration, which the ranks agree on where it is due by the clock
//   asynchronous              the ranks meet: nothing is under way then
//   ranks that may die        each for itself, by the clock or by what the job has done
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/report/checkpoint.hpp"
#include "runtime/training/evaluations.hpp"
#include "runtime/training/failure/resumption.hpp"
#include "runtime/training/rank.hpp"

namespace hearsay {

class Checkpoints {
 public:
  /// All must outlive it.
  Checkpoints(const Run& run, Learner& learner, Membership& membership, Evaluations& evaluations);

  /// In place of a new diary: from the newest complete checkpoint that all ranks can read. Collective; throws DataError
  /// where there is none.
  void resume();
  /// How many have been written, those of the parts of the run before included; and of a spare, which is told.
  std::uint64_t written() const { return written_; }
  void go_on_after(std::uint64_t written) { written_ = written; }
  /// Training begins: from here on checkpoints become due.
  void start();

  /// Lockstep ranks: all know alike what is due by iterations; on what is due by the clock they have to agree, and
  /// `agreed` says that they did.
  bool due_after(Iteration done) const;
  bool due_by_the_clock() const;
  void agreed();
  /// Asynchronous ranks, between two iterations.
  void go_on_alone();
  /// A rank that has ended: as long as others come for a checkpoint, it takes part.
  void accompany() { meet(Coming::has_ended); }

  /// Writes this rank's, between two iterations; all ranks have met. `write_last`: a signal is about to end it.
  void write() { write(Having::met, run_.stop.received() == 0); }
  void write_last() { write(Having::met, false); }
  /// Asynchronous ranks that a signal has ended; `in_order`: this one between two iterations of its own. Not where one
  /// of them was interrupted within an iteration, nor in a simulation. Collective.
  void write_when_settled(bool in_order);
  /// Says once of each that could not be written why.
  void note_unwritten();
  /// Waits for what is being written.
  void wait();
  /// Removes those that newer ones have replaced.
  void prune() const;

 private:
  /// All ranks have met before, or each writes for itself what its model is.
  enum class Having { met, met_nobody };
  enum class Coming { for_a_checkpoint, has_ended };
  using TellPart = std::function<void(const char* name, const std::function<void(Archive&)>& state)>;
  void parts(const TellPart& tell);
  void write(Having having, bool durable);
  void meet(Coming coming);
  void write_alone();
  std::uint64_t periods() const;
  void begin_with_mean(const Resumption& found);
  void say_resumed(const std::string& words) const;
  const CheckpointOptions& options() const { return run_.plan.parts().checkpoint; }

  const Run& run_;
  Learner& learner_;
  Membership& membership_;
  Evaluations& evaluations_;
  CheckpointFolder folder_;
  CheckpointWriter writer_;
  std::uint64_t written_ = 0;
  double due_s_ = 0.0;  // the next by time
  Iteration due_ = 0;   // the next by iterations; 0: none
  /// Ranks that write each for itself: how many had been written when this part of the run began, in which period since
  /// then the last one was, and how many periods the job had had before.
  std::uint64_t written_before_ = 0, period_ = 0, periods_before_ = 0;
};

}  // namespace hearsay

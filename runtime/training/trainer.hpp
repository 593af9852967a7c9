#pragma once
// The training loop: the same for every algorithm, model and optimizer. No LibTorch in this header.
#include <chrono>
#include <functional>
#include <limits>

#include "runtime/exchange/participant.hpp"
#include "runtime/training/model/learning_rate.hpp"
#include "runtime/training/model/optimizer.hpp"

namespace hearsay {

/// How long to train. An epoch is a pass over the data of all ranks together.
struct RunLength {
  enum class Budget {
    rank,  ///< every rank does so many iterations
    job    ///< so many times the ranks, by whoever is free
  };
  Iteration iterations_per_epoch = 1;
  Iteration iterations = 0;
  Budget budget = Budget::rank;
  /// H. Of a job's budget ranks begin no round that is less than half paid for, and end all others.
  Iteration round = 1;
  double epoch(double iterations_done) const { return iterations_done / static_cast<double>(iterations_per_epoch); }
};

class Trainer {
 public:
  /// Computes the loss of the next batch at the replica's x and leaves the gradient in its g.
  using LossAndGradient = std::function<double()>;
  /// Told of every iteration when it is over, with its loss (taken before its step). False ends training.
  using Observer = std::function<bool(Iteration k, double loss)>;
  /// Asked while other ranks are still at work and this one is done. False ends that, too.
  using MayWait = std::function<bool()>;

  struct Parts {
    Participant& participant;
    LossAndGradient loss_and_gradient;
    Optimizer& optimizer;
    const LearningRate& learning_rate;
    int rank = 0;
  };
  explicit Trainer(Parts parts);

  /// Iterations 0, 1, …, or those after what was done before, until the budget is spent or until `observe` returns
  /// false; returns how many are done. A rank whose own budget is spent goes on sending and mixing, without gradients,
  /// until that of all ranks is.
  /// Throws DivergenceError with rank, iteration, epoch and the last finite loss when a loss or a norm is not finite,
  /// WaitInterrupted from a wait for a neighbour.
  Iteration run(const RunLength& length, const Observer& observe, const MayWait& may_wait);
  /// Iterations that are done so far: what `run` would have returned, had it not thrown.
  Iteration iterations_done() const { return done_; }
  /// Iterations of the job, over its ranks.
  double job_done() const { return progress(done_); }
  /// Spent after the last iteration, while other ranks were at work.
  double idle_seconds() const { return std::chrono::duration<double>(idle_).count(); }
  /// `run` goes on after `done` iterations.
  void begin_at(Iteration done) { done_ = done; }
  void state(Archive& archive);

 private:
  bool is_spent(Iteration k, const RunLength& length) const;
  double job_limit(const RunLength& length) const;
  double iterate(Iteration k, const RunLength& length);

  double progress(Iteration k) const { return parts_.participant.members().job_iterations(k); }

  Parts parts_;
  std::chrono::nanoseconds idle_{};
  Iteration done_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace hearsay

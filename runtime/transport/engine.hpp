#pragma once
// Who drives communication.
//
// Over TCP and UCX a one-sided put completes only when its target enters MPI, so somebody must always be there. A
// CommunicationEngine owns all use of MPI after start-up: the computing thread posts to the mailbox, wakes the engine,
// and waits with `wait_until`. ThreadEngine runs a thread for it; InlineEngine is for places without threads (a
// simulator) and moves communication on whenever it is called.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.hpp"

namespace hearsay {

/// What an engine drives: one step of communication, true if anything moved. Called by one thread at a time.
using ProgressStep = std::function<bool()>;

/// Thrown out of a wait because the job was interrupted, e.g. by a stop signal: the replica is as `start` left it.
struct WaitInterrupted : std::exception {
  const char* what() const noexcept override { return "interrupted while waiting for a neighbour"; }
};

class CommunicationEngine {
 public:
  virtual ~CommunicationEngine() = default;
  /// There is something new to send. Does not wait. Rethrows a failure of the communication side.
  virtual void wake() = 0;
  /// Waits until `ready()`; `ready` must only read what `progress` and submitted jobs change. Rethrows a failure of the
  /// communication side, and what a submitted job has thrown.
  virtual void wait_until(const std::function<bool()>& ready) = 0;
  /// Hands over a job, which may call MPI, and does not wait. Jobs run in order, one at a time. If one throws, those
  /// after it are dropped until the next `wait_until` rethrows; the engine goes on.
  virtual void submit(std::function<void()> job) = 0;
  /// Runs `job`, which may call MPI, where MPI may be called, and waits for it. Rethrows what it throws, or what a
  /// submitted job before it has thrown.
  virtual void run(const std::function<void()>& job) = 0;
  /// Lets communication move on from the computing thread where there is no other (layer boundaries); else nothing.
  virtual void poll() {}
  /// What of `seconds` of computing is still to pass, where time is simulated: less than all of it if a submitted job
  /// has held up the computing that would have gone on beside it.
  virtual double still_to_pass(double seconds) { return seconds; }
};

/// Communication on the caller's own thread. A submitted job runs at once and to its end. With a clock the time that it
/// took is owed to the computing that follows until somebody waits: max(job, computing) passes, as with two threads.
class InlineEngine final : public CommunicationEngine {
 public:
  /// `idle` runs in waits whenever a step has moved nothing; it returns when the next step may, at the latest.
  explicit InlineEngine(
      ProgressStep step, std::function<void()> idle = [] { std::this_thread::yield(); }, Clock clock = nullptr)
      : step_(std::move(step)), idle_(std::move(idle)), clock_(std::move(clock)) {}
  void wake() override { poll(); }
  void wait_until(const std::function<bool()>& ready) override;
  void submit(std::function<void()> job) override;
  void run(const std::function<void()>& job) override;
  double still_to_pass(double seconds) override;
  /// Steps until nothing moves any more.
  void poll() override {
    while (step_()) {
    }
  }

 private:
  ProgressStep step_;
  std::function<void()> idle_;
  Clock clock_;
  double owed_s_ = 0.0;  // to computing, since the first job after the last wait
};

/// How long an idle communication thread sleeps while nobody waits: `shortest` at first, then `growth` times as long
/// each time, at most `longest`. What comes after a silence is seen within `growth` times its length.
struct Naps {
  std::chrono::microseconds shortest{20};
  int growth = 2;
  std::chrono::microseconds longest{2000};
};

/// Communication on a thread of its own. While something moves, or somebody waits, it polls and yields; when idle it
/// naps, so that it takes no core from those who compute.
class ThreadEngine final : public CommunicationEngine {
 public:
  explicit ThreadEngine(ProgressStep step, const Naps& naps = {});
  /// Joins the thread; what was posted is still handed to MPI. Where it must have arrived, wait for Mailbox::sending().
  ~ThreadEngine() override;
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  void wake() override;
  void wait_until(const std::function<bool()>& ready) override;
  void submit(std::function<void()> job) override;
  void run(const std::function<void()>& job) override;

 private:
  void loop();
  bool run_next_job();
  void pause();
  void rethrow_failure();
  void rethrow_job_failure();

  ProgressStep step_;
  Naps naps_;
  int idle_steps_ = 0;                // since something moved; the communication thread's alone, like the next
  std::chrono::microseconds nap_{0};  // that is due
  std::mutex mutex_;
  std::condition_variable work_;   // the communication thread sleeps here
  std::condition_variable moved_;  // the computing thread waits here
  std::deque<std::function<void()>> jobs_;
  std::exception_ptr job_failure_;  // of a submitted job
  std::exception_ptr failure_;
  bool woken_ = false;
  bool stopping_ = false;
  std::atomic<bool> failed_{false};
  std::atomic<bool> job_failed_{false};
  std::atomic<bool> somebody_waits_{false};
  std::thread thread_;
};

}  // namespace hearsay

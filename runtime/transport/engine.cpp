#include "runtime/transport/engine.hpp"

#include <algorithm>
#include <utility>

#include "base/time_slice.hpp"

namespace hearsay {
namespace {

/// Runs a job; null if it throws nothing.
std::exception_ptr thrown_by(const std::function<void()>& job) {
  try {
    job();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void InlineEngine::wait_until(const std::function<bool()>& ready) {
  owed_s_ = 0.0;
  while (!ready()) {
    if (!step_() && !ready()) idle_();  // a step may also make room without moving anything
  }
}

void InlineEngine::submit(std::function<void()> job) {
  if (!clock_) return job();
  const auto began = clock_();
  job();
  owed_s_ += std::chrono::duration<double>(clock_() - began).count();
}

void InlineEngine::run(const std::function<void()>& job) {
  owed_s_ = 0.0;
  job();
}

double InlineEngine::still_to_pass(double seconds) {
  const double paid = std::min(seconds, owed_s_);
  owed_s_ -= paid;
  return seconds - paid;
}

ThreadEngine::ThreadEngine(ProgressStep step, const Naps& naps)
    : step_(std::move(step)), naps_(naps), thread_([this] { loop(); }) {}

ThreadEngine::~ThreadEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void ThreadEngine::rethrow_failure() {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void ThreadEngine::rethrow_job_failure() {
  if (!job_failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  job_failed_.store(false, std::memory_order_release);
  std::rethrow_exception(std::exchange(job_failure_, nullptr));
}

void ThreadEngine::wake() {
  rethrow_failure();
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  work_.notify_one();
}

void ThreadEngine::wait_until(const std::function<bool()>& ready) {
  const auto over = [&] {
    return failed_.load(std::memory_order_acquire) || job_failed_.load(std::memory_order_acquire) || ready();
  };
  if (!over()) {
    somebody_waits_.store(true, std::memory_order_release);
    wake();
    std::unique_lock lock(mutex_);
    // The time-out is a second line of defence: `ready` reads state that mutex_ does not guard.
    while (!moved_.wait_for(lock, std::chrono::milliseconds(1), over)) {
    }
    somebody_waits_.store(false, std::memory_order_release);
  }
  rethrow_failure();
  rethrow_job_failure();
}

// What comes after a job that has failed, before its failure is known here, is dropped as well: who waits then, and
// goes by an exception, may be sure that nothing of its own is still run.
void ThreadEngine::submit(std::function<void()> job) {
  rethrow_failure();
  {
    const std::lock_guard lock(mutex_);
    if (job_failure_) return;
    jobs_.push_back(std::move(job));
    woken_ = true;
  }
  work_.notify_one();
}

void ThreadEngine::run(const std::function<void()>& job) {
  rethrow_job_failure();  // from now on a failed job can only be one before ours, and has dropped it
  bool done = false;
  std::exception_ptr thrown;
  submit([&] {
    std::exception_ptr caught = thrown_by(job);
    const std::lock_guard lock(mutex_);
    // Moved: the waiting thread owns the exception alone, and no reference of ours outlives the hand-over.
    thrown = std::move(caught);
    done = true;
  });
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [&] { return done || failed_.load() || job_failed_.load(); });
  if (!done) {
    lock.unlock();
    rethrow_failure();
    rethrow_job_failure();
  }
  if (thrown) std::rethrow_exception(std::move(thrown));
}

/// False if there was none.
bool ThreadEngine::run_next_job() {
  std::function<void()> job;
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  std::exception_ptr caught = thrown_by(job);
  const std::lock_guard lock(mutex_);
  if (caught) {
    jobs_.clear();
    job_failure_ = std::move(caught);
    job_failed_.store(true, std::memory_order_release);
  }
  moved_.notify_all();
  return true;
}

void ThreadEngine::loop() {
  prefer_short_time_slices();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ && !woken_ && jobs_.empty()) return;
      woken_ = false;
    }
    try {
      const bool worked = run_next_job();
      if (step_() || worked) {
        idle_steps_ = 0;
        if (somebody_waits_.load(std::memory_order_acquire)) {
          const std::lock_guard lock(mutex_);
          moved_.notify_all();
        }
      } else {
        pause();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
      moved_.notify_all();
      return;
    }
  }
}

// A neighbour's packet is worth a few polls; after that the core belongs to whoever can compute. Every look takes it
// away for some 20 µs, 35 in a virtual machine, so naps grow.
void ThreadEngine::pause() {
  constexpr int polls = 4;
  if (++idle_steps_ <= polls) {
    nap_ = naps_.shortest;
    std::this_thread::yield();
    return;
  }
  const auto longest = somebody_waits_.load(std::memory_order_acquire) ? naps_.shortest * 2 : naps_.longest;
  const auto nap = std::min(nap_, longest);
  nap_ = std::min(nap_ * naps_.growth, naps_.longest);
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, nap, [this] { return woken_ || stopping_ || !jobs_.empty(); });
}

}  // namespace hearsay

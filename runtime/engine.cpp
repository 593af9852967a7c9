#include "runtime/engine.hpp"

#include <algorithm>
#include <utility>

namespace hearsay {

void InlineEngine::wait_until(const std::function<bool()>& ready) {
  while (!ready()) {
    if (!step_()) std::this_thread::yield();
  }
}

ThreadEngine::ThreadEngine(ProgressStep step, std::chrono::microseconds longest_sleep)
    : step_(std::move(step)), longest_sleep_(longest_sleep), thread_([this] { loop(); }) {}

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

void ThreadEngine::wake() {
  rethrow_failure();
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  work_.notify_one();
}

void ThreadEngine::wait_until(const std::function<bool()>& ready) {
  if (ready()) return;
  somebody_waits_.store(true, std::memory_order_release);
  wake();
  std::unique_lock lock(mutex_);
  // The time-out is a second line of defence: `ready` reads state that mutex_ does not guard.
  while (!moved_.wait_for(lock, std::chrono::milliseconds(1),
                          [&] { return failed_.load(std::memory_order_acquire) || ready(); })) {
  }
  somebody_waits_.store(false, std::memory_order_release);
  lock.unlock();
  rethrow_failure();
}

void ThreadEngine::run(const std::function<void()>& job) {
  rethrow_failure();
  std::unique_lock lock(mutex_);
  job_ = &job;
  woken_ = true;
  work_.notify_one();
  moved_.wait(lock, [&] { return job_ == nullptr || failed_.load(std::memory_order_acquire); });
  if (job_ != nullptr) std::rethrow_exception(failure_);
  if (job_failure_) std::rethrow_exception(std::exchange(job_failure_, nullptr));
}

void ThreadEngine::loop() {
  int idle_steps = 0;
  for (;;) {
    const std::function<void()>* job = nullptr;
    {
      const std::lock_guard lock(mutex_);
      job = job_;
      if (stopping_ && !woken_ && job == nullptr) return;
      woken_ = false;
    }
    try {
      if (job != nullptr) {
        std::exception_ptr thrown;
        try {
          (*job)();
        } catch (...) {
          thrown = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        // Moved: the waiting thread owns the exception alone, and no reference of ours outlives the hand-over.
        job_failure_ = std::move(thrown);
        job_ = nullptr;
        moved_.notify_all();
      }
      if (step_()) {
        idle_steps = 0;
        if (somebody_waits_.load(std::memory_order_acquire)) {
          const std::lock_guard lock(mutex_);
          moved_.notify_all();
        }
      } else {
        sleep(++idle_steps);
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

// A neighbour's packet is worth a few polls; after that the core belongs to whoever can compute.
void ThreadEngine::sleep(int idle_steps) {
  constexpr int polls = 4;
  constexpr std::chrono::microseconds shortest{20};
  if (idle_steps <= polls) {
    std::this_thread::yield();
    return;
  }
  const auto longest = somebody_waits_.load(std::memory_order_acquire) ? shortest * 2 : longest_sleep_;
  const auto nap = std::min<std::chrono::microseconds>(shortest * (idle_steps - polls), longest);
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, nap, [this] { return woken_ || stopping_; });
}

}  // namespace hearsay

#pragma once
// Ranks that die before training begins, where the launcher leaves the others alone (mpirun --enable-recovery).
// MPI_Init and what follows it wait for all ranks, for ever, and no heartbeat has been heard of yet. So until training
// begins a thread of every rank looks whether the launcher's other processes on this host, its children as this one is,
// are still there; where one is missing, it ends the job.
//
// A rank on another host is looked after by its neighbours there. Where it has none, a time-out ends the job.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace hearsay {

class StartWatch {
 public:
  /// Does nothing where the launcher ends the job itself, or is none that is known. `ends`: called by the thread before
  /// it ends this process, and with it the job; its words are empty where another rank says them.
  explicit StartWatch(std::function<void(const std::string& words)> ends);
  ~StartWatch() { end(); }
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  /// Training begins, or this rank leaves.
  void end();

 private:
  /// What the launcher has told this process. Read before the thread begins: MPI_Init sets variables, and whoever looks
  /// for one meanwhile may crash.
  struct Launched {
    Launched();
    std::string job;                     // PMIx's name for it; empty: none
    long local_rank, ranks_here, ranks;  // −1: not known
  };

  void watch();
  [[noreturn]] void end_job(int launcher, const std::string& words) const;
  bool ends_within(double seconds);

  const std::function<void(const std::string& words)> ends_;
  const Launched launched_{};
  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace hearsay

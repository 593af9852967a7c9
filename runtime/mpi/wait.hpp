#pragma once
// Waiting for MPI without starving ranks that share a core. Included in runtime/mpi/*.cpp only.
#include <chrono>
#include <thread>

namespace hearsay::mpi {

/// Yields at first, then sleeps: a message that is on its way is worth a few polls.
class Backoff {
 public:
  void pause() {
    constexpr int polls = 64;
    if (++pauses_ < polls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(30));
    }
  }

 private:
  int pauses_ = 0;
};

}  // namespace hearsay::mpi

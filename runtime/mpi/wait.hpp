#pragma once
// Waiting for MPI without starving ranks that share a core. Included in runtime/mpi/*.cpp only.
#include <chrono>
#include <thread>

namespace hearsay::mpi {

/// Yields at first, then sleeps: a message that is on its way is worth polling for, and sleeping costs more than the
/// 30 µs asked for (about 80 µs were measured, two of which make the latency of a message).
class Backoff {
 public:
  void pause() {
    constexpr std::chrono::microseconds patience{200};
    if (Clock::now() - start_ < patience) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(30));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace hearsay::mpi

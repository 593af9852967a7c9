#pragma once
// Times on the GPU, as ratios to what its memory can do: the bandwidth of a copy of the same length in the same run.
#include <cuda_runtime.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/timing.hpp"
#include "runtime/gpu/machine/check.cuh"

namespace hearsay::device {

class Event {
 public:
  Event() { check(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Median seconds of `work` on `stream` between two events; `warmup` calls before are not timed.
inline double median_seconds(cudaStream_t stream, int warmup, int repeats, const std::function<void()>& work) {
  for (int i = 0; i < warmup; ++i) work();
  Event start, stop;
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    check(cudaEventRecord(start.get(), stream));
    work();
    check(cudaEventRecord(stop.get(), stream));
    check(cudaEventSynchronize(stop.get()));
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()));
    seconds.push_back(1e-3 * milliseconds);
  }
  return median(std::move(seconds));
}

/// Prints JSON lines of one length n.
class Table {
 public:
  Table(std::string machine, std::size_t n, double bytes_per_s)
      : machine_(std::move(machine)), n_(n), bytes_per_s_(bytes_per_s) {}

  /// `floor`: how many bytes must be moved, in words, and as a number. density 0: not a matter of density.
  void line(const char* name, double density, double seconds, const char* floor, double floor_bytes) const {
    const double floor_s = floor_bytes / bytes_per_s_;
    std::printf(
        "{\"name\": \"%s\", \"n\": %zu, \"density\": %g, \"seconds\": %.4g, \"ratio\": %.4g, "
        "\"floor\": \"%s\", \"floor_s\": %.4g, \"copy_bytes_per_s\": %.4g, \"machine\": \"%s\"}\n",
        name, n_, density, seconds, seconds / floor_s, floor, floor_s, bytes_per_s_, machine_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string machine_;
  std::size_t n_;
  double bytes_per_s_;
};

}  // namespace hearsay::device

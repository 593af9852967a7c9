#pragma once
// How long something takes, what many such times have in common, and on what machine they were taken.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearsay {

template <class Work>
double seconds_taken(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The ⌈fraction · count⌉-th smallest value (nearest rank, nothing interpolated); fraction in (0, 1], at least one
/// value (std::logic_error).
inline double quantile(std::vector<double> values, double fraction) {
  if (values.empty() || !(fraction > 0.0 && fraction <= 1.0)) throw std::logic_error("no such quantile");
  // 0.99 · 100 is a little above 99 in floating point; it must stay the 99th.
  const double position = std::ceil(fraction * static_cast<double>(values.size()) - 1e-9);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::max(position, 1.0)) - 1;
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

/// An even count has the lower of the two in the middle.
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// The processor as the system calls it and how many cores there are: "Intel(R) Xeon(R) Processor, 2 cores".
inline std::string processor_name() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  return name + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace hearsay

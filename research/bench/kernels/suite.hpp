#pragma once
// Kernels beside the memory passes that bound them, timed in one run.
//
// Machines differ and are noisy, so what counts is a ratio: the median time of a kernel over that of its floor, both
// measured again and again in random order within one run (Google Benchmark's interleaving).
#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace hearsay {

/// What is asked of a kernel, and in what unit; `none`: it is a floor itself, or only to be compared with.
struct Target {
  enum class Kind { none, ratio_at_most, ratio_at_least, seconds_at_most, bytes_per_s_at_least };
  Kind kind = Kind::none;
  double value = 0.0;
};

/// One line of the table.
struct Kernel {
  std::string name;                             ///< unique, as "select/1e7/0.001"
  std::function<void(benchmark::State&)> work;  ///< runs Google Benchmark's loop
  std::string floor{};                          ///< the kernel to divide by; empty: none
  double floors = 1.0;                          ///< how many of them: 4 reads are half of 8
  Target target{};
  double bytes = 0.0;  ///< of fp32 values in one call; 0: no rate is reported
};

struct Measured {
  const Kernel* kernel;
  std::size_t repetitions;
  double median_s;
  double ratio;        ///< to floors × floor; 0 without one
  double bytes_per_s;  ///< 0 without `bytes`
  bool met;            ///< the target; true without one
};

/// Runs those kernels whose name contains `filter`, and the floors that they need, each `repetitions` times for about
/// `seconds` a time. Names appear on stderr when they are first run.
std::vector<Measured> measure(const std::vector<Kernel>& kernels, const std::string& filter, int repetitions,
                              double seconds);

void print_table(const std::vector<Measured>& results, std::ostream& out);
/// One JSON object a line: kernel, floor, ratio, median_s, bytes_per_s, target, met, repetitions, machine, hearsay.
void print_json_lines(const std::vector<Measured>& results, std::ostream& out);

// The kernels by what they do, in the files of these names. `most_values`: the longest block that memory and patience
// allow.
void add_passes(std::vector<Kernel>& kernels, std::size_t most_values);
void add_selection(std::vector<Kernel>& kernels, std::size_t most_values);
void add_neighbour(std::vector<Kernel>& kernels, std::size_t most_values);
void add_merging(std::vector<Kernel>& kernels);
void add_codecs(std::vector<Kernel>& kernels);
void add_value_events(std::vector<Kernel>& kernels);
void add_torch_topk(std::vector<Kernel>& kernels);

}  // namespace hearsay

#pragma once
// What a run would be and take, without running it. No LibTorch in this header.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/training/run_plan.hpp"

namespace hearsay {

/// What a run would be, for --dry-run.
struct DryRun {
  int ranks = 0, spares = 0;
  std::int64_t directed_edges = 0;
  double spectral_gap = 0.0;
  std::uint64_t parameters = 0, segments = 0;
  /// What a rank with the highest degree holds at most, by what for: measured here (program, data, model, one step),
  /// and computed (window, exchange, optimizer, evaluation).
  struct Memory {
    std::string_view what;
    std::uint64_t bytes = 0;
  };
  std::vector<Memory> memory{};
  std::uint64_t memory_bytes() const {  ///< all of it
    std::uint64_t sum = 0;
    for (const Memory& part : memory) sum += part.bytes;
    return sum;
  }
  std::optional<Stability> stability{};              ///< with the configured optimizer
  std::uint64_t worst_case_bytes_per_iteration = 0;  ///< packets with every segment in them, on all edges together
  Iteration iterations_per_epoch = 0, iterations = 0;
};
/// Loads the data, makes the model and computes one gradient, but opens no window; not collective. Throws ConfigError,
/// DataError.
DryRun dry_run(const RunPlan& plan, int processes);

/// The model of a run, and what a forward and a backward pass of one batch take here.
struct MeasuredModel {
  Layout layout;
  double step_s = 0.0;  ///< median of five
};
/// Loads the data and makes the model; not collective. Throws ConfigError, DataError.
MeasuredModel measure_model(const RunPlan& plan, int ranks);

}  // namespace hearsay

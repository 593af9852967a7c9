#pragma once
// What a run would be and take, without running it. No LibTorch in this header.
#include <cstdint>

#include "runtime/training/run_plan.hpp"

namespace hearsay {

/// What a run would be, for --dry-run.
struct DryRun {
  int ranks = 0;
  std::int64_t directed_edges = 0;
  double spectral_gap = 0.0;
  std::uint64_t parameters = 0, segments = 0;
  std::uint64_t window_bytes = 0;                    ///< of a rank with the highest degree
  std::uint64_t worst_case_bytes_per_iteration = 0;  ///< packets with every segment in them, on all edges together
  Iteration iterations_per_epoch = 0, iterations = 0;
};
/// Loads the data and makes the model, but no window; trains nothing; not collective. Throws ConfigError, DataError.
DryRun dry_run(const RunPlan& plan, int ranks);

/// The model of a run, and what a forward and a backward pass of one batch take here.
struct MeasuredModel {
  Layout layout;
  double step_s = 0.0;  ///< median of five
};
/// Loads the data and makes the model; not collective. Throws ConfigError, DataError.
MeasuredModel measure_model(const RunPlan& plan, int ranks);

}  // namespace hearsay

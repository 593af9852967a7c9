#pragma once
// What a saved model is worth on the test set of a run. No LibTorch in this header.
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/training/run_plan.hpp"

namespace hearsay {

struct ScoredModel {
  std::vector<MetricValue> metrics{};  ///< the task's own first
  double loss = 0.0;                   ///< mean over targets, as tests have it
  std::uint64_t examples = 0;
};
/// Loads the data and the model, which `Model::save` has written for this plan's model; on the processor, not
/// collective. Throws ConfigError, DataError.
ScoredModel score_model(const RunPlan& plan, const std::filesystem::path& file);

}  // namespace hearsay

#pragma once
// A configuration with the program's tables of models and data sets put to it: a run that can start. No LibTorch here.
#include <memory>

#include "runtime/training/run_plan.hpp"

namespace hearsay {

class ChosenTask;

class ChosenRun {
 public:
  /// Reads all sections. Throws ConfigError.
  explicit ChosenRun(Config root);
  const RunPlan& plan() const { return plan_; }
  /// Throws what is wrong with the device, the data's files, or this model for these data. What has been loaded is kept
  /// for the training.
  void check() const;
  /// For several ranks in one process: all share what `check` has loaded.
  void share_data() const;

 private:
  std::shared_ptr<ChosenTask> task_;
  RunPlan plan_;
};

}  // namespace hearsay

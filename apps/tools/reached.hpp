#pragma once
// Accuracy against time: after how long runs reach what all of them reach.
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/metric.hpp"

namespace hearsay {

/// What the averaged model was worth after so long.
struct Evaluated {
  double time_s = 0.0;
  double value = 0.0;
};

/// The evaluations of a run by this metric, in the order of time; none where it has left none.
std::vector<Evaluated> read_evaluations(const std::filesystem::path& directory, const Metric& metric);

/// The best value that every run reaches, and when each first does. Nothing where a run has no evaluation.
struct CommonValue {
  double value = 0.0;
  std::vector<double> time_s;  ///< one a run
};
std::optional<CommonValue> reached_by_all(std::span<const std::vector<Evaluated>> runs, const Metric& metric);

}  // namespace hearsay

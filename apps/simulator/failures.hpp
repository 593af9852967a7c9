#pragma once
// Which ranks of a simulated job fail, and which come back: `simulate.failures` and `simulate.storm`.
//
// A rank that has failed stays silent, and a new process comes back at its vertex: one of the spares
// (train.spares), which are the last processes of the job. Until then that spare only says that it lives. Spares come
// in the order of their numbers; the i-th of them is the i-th to come back.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/config/config.hpp"

namespace hearsay {

/// A rank fails; seconds since training began.
struct SimulatedFailure {
  static constexpr double never = std::numeric_limits<double>::infinity();
  int rank = 0;  ///< its vertex of the graph
  double at_s = 0.0;
  double back_at_s = never;
};

/// Failures at the instants of a Poisson process. Each hits one of those who live then, drawn evenly.
struct Storm {
  double failures_per_hour = 0.0;                 ///< of the job
  double back_after_s = SimulatedFailure::never;  ///< while there are spares
  std::uint64_t seed = 1;
};

class SimulatedFailures {
 public:
  SimulatedFailures() = default;
  /// The keys `failures` and `storm`, for so many processes.
  SimulatedFailures(Config& simulate, int processes);

  bool any() const { return !listed_.empty() || storm_.failures_per_hour > 0.0; }
  /// Draws the storm, and says which process fails and which comes. `processes`: the spares included, fewer than that.
  /// Throws ConfigError if a rank is not there, if nobody lives at some time, or if there are not enough spares.
  void settle(int processes, int spares);

  /// When this process fails, if it does.
  std::optional<double> fails_after_s(int process) const;
  struct Return {
    int rank;
    double at_s;
  };
  /// For whom this spare comes, and when, if it does.
  std::optional<Return> comes_back(int process) const;
  /// The rank of this process, now or later; a spare that nobody needs has its own number.
  int rank_of(int process) const;

 private:
  std::vector<SimulatedFailure> listed_{};
  Storm storm_{};
  int ranks_ = 0;
  std::vector<std::optional<double>> fails_{};  // by process
  std::vector<Return> returns_{};               // by spare
};

/// The failures of a storm until nobody is left whom it may hit, by their instants. The last one who lives is spared.
/// `ranks`: at the start. No more than `spares` come back.
std::vector<SimulatedFailure> drawn_failures(const Storm& storm, int ranks, int spares);

}  // namespace hearsay

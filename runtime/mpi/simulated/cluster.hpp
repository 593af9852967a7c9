#pragma once
// A simulated cluster: ranks are SimGrid actors of this process, one on each host of a platform file, and MPI is SMPI.
#include <filesystem>
#include <functional>

namespace hearsay::mpi {

struct ClusterOptions {
  std::filesystem::path platform;  ///< of SimGrid, version 4.1
  int ranks = 1;
  double scale = 1.0;  ///< every link's bandwidth is divided by it
  /// A thread for every rank, as what keeps state by thread needs (LibTorch). Without, ranks take turns on one thread,
  /// which is ten times as fast; `rank_main` must then not wait for anything while it handles an exception.
  bool threads = true;
};

/// What simulated time is made of: a message of n bytes takes the sum of the latencies on its way and n over the
/// bandwidth that it is given there, links being shared fairly among the messages on them (SimGrid's CM02 without
/// cross traffic, factors 1). Computing takes no time but what pass_time says, nor do MPI's own instructions.
///
/// Runs `rank_main`, which makes the rank's Environment, once on every rank and returns when all have returned. Rank r
/// is on the r-th host, by name with numbers in order of their value. Once a process. `rank_main` must not throw. Ranks
/// that all wait for each other end the process with exit code 4.
/// Throws ConfigError if the platform cannot be read or has fewer hosts than ranks.
void run_cluster(const ClusterOptions& options, const std::function<void()>& rank_main);

}  // namespace hearsay::mpi

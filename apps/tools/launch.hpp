#pragma once
// hearsay launch and python3 -m hearsay launch --without-mpi: a job of processes on this host, connected by sockets.
#include <string>
#include <vector>

namespace hearsay {

struct LocalLaunch {
  int ranks = 1;
  std::vector<std::string> words{};  ///< the program and its arguments
  bool recover = false;              ///< a process that dies ends no other (train.on_failure: continue)
  /// A name by which processes that are not started here find the job (runtime/job/start.hpp); empty: nobody else does.
  std::string job{};
};

/// Starts the processes and returns when all have ended. The exit code is that of the first that failed, 128 + its
/// number where a signal has ended it; one that has failed for want of another (4) gives way. 0 if none failed. What
/// fails ends the others: five seconds later by SIGTERM, then by SIGKILL. With `recover` one that is killed, or has
/// lost the others, ends nobody, and has not failed where any ended well. Signals that come here go on to all of them,
/// and they end with this process, however it ends. Throws ConfigError for a program that cannot be started.
int launch_here(const LocalLaunch& launch);

}  // namespace hearsay

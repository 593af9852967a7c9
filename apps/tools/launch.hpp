#pragma once
// hearsay launch and python3 -m hearsay launch --without-mpi: a job of processes on this host, connected by sockets.
#include <string>
#include <vector>

namespace hearsay {

struct LocalLaunch {
  int ranks = 1;
  std::vector<std::string> words{};  ///< the program and its arguments
  bool recover = false;              ///< a process that dies ends no other (train.on_failure: continue)
};

/// Starts the processes and returns when all have ended: the exit code of the first that failed, 128 + its number where
/// a signal has ended it; 0 if none did. With `recover` 0 if any ended well. What fails ends the others, five seconds
/// later by SIGTERM and then by SIGKILL, but with `recover`. Signals that come here go on to all of them; the processes
/// end with this one, however it ends. Throws ConfigError for a program that cannot be started.
int launch_here(const LocalLaunch& launch);

}  // namespace hearsay

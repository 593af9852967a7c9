#pragma once
// Ctrl-C, SIGTERM and the warnings of clusters end a run in good order: the training loop asks after every iteration
// whether a signal has come, finishes what it does together with the other ranks, writes the reports and leaves by
// throwing Stopped.
//
//   const StopSignal stop;                                   // while this lives, the first signal only sets a flag
//   …
//   if (stop.received() != 0) throw Stopped(stop.received());  // when all ranks know
//
// Not every rank need receive the signal: ranks have to agree before they leave the loop.
#include <stdexcept>

namespace hearsay {

/// Leaves a run that a signal has stopped, after the reports are written: exit code 128 + signal.
class Stopped : public std::runtime_error {
 public:
  explicit Stopped(int signal);
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Handlers for SIGINT and SIGTERM; for SIGHUP (the terminal is gone), SIGUSR1, SIGUSR2 and SIGXCPU (a cluster says
/// that time is nearly up), unless they are ignored, as under nohup. SIGQUIT ends a process at once, as ever. The
/// destructor restores what was there before. A second SIGINT or SIGTERM is not caught any more and ends the process at
/// once, for those who cannot wait. One at a time per process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The number of the first signal since construction, or 0. May be called from any thread.
  int received() const;
};

}  // namespace hearsay

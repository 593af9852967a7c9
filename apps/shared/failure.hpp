#pragma once
// From exceptions to exit codes, on one rank or on all.
#include <functional>
#include <string>

#include "runtime/transport/job.hpp"

namespace hearsay {

/// How a rank fails: exit code (docs/guide/errors.md) and words.
struct Failure {
  int code = 0;
  std::string message;
};

/// The exception in flight; to be called in a catch block only.
Failure failure_in_flight();

/// Tells scripts/launch, in the file that it has named (HEARSAY_EXIT_FILE), what a rank ends with: mpirun
/// --enable-recovery ends with 0, whatever the ranks say.
void note_exit_code(int code);

/// Runs `work`, which must not communicate, on every rank. If it fails anywhere, rank 0 prints every different message
/// once and all ranks return the highest exit code; 0 if it went well everywhere. Collective. So what is wrong on every
/// rank (a configuration, a missing file) is said once, and the job ends in good order.
int attempt_together(const Job& job, const std::function<void()>& work);

/// Says on stderr what went wrong on this rank and returns the exit code. If other ranks may be waiting for this one,
/// ends the whole job instead. `job`: null unless it was started.
int report_failure(const Failure& failure, const Job* job);

/// Ends this process alone, as it is, after what was printed: the end of a job would wait for processes that have died.
[[noreturn]] void leave(int exit_code);

}  // namespace hearsay

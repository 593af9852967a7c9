#include "runtime/mpi/process.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace hearsay::mpi {

void prepare_process() {}

// Simulated ranks run one at a time.
int needed_thread_level() { return MPI_THREAD_SINGLE; }

void require_whole_job() {}

// All ranks are one process.
void end_job(CommunicatorHandle, int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace hearsay::mpi

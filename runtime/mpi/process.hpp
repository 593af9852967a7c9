#pragma once
// How a rank begins and ends. Written twice: in real/ and in simulated/. Included in runtime/mpi/ only.

#include "runtime/mpi/communicator_handle.hpp"

namespace hearsay::mpi {

/// Before MPI_Init.
void prepare_process();
/// The thread level that the engine of this build needs.
int needed_thread_level();
/// After MPI_Init: throws ConfigError where this process is the only one that MPI knows of, and one of several to
/// whatever has started it. In a simulation nobody but the simulator starts ranks.
void require_whole_job();
/// Ends every rank of the job, whose ranks are `all`; never returns.
[[noreturn]] void end_job(CommunicatorHandle all, int exit_code);

}  // namespace hearsay::mpi

#pragma once
// How a rank begins and ends. Written twice: in real/ and in simulated/. Included in runtime/mpi/ only.

#include "runtime/mpi/communicator_handle.hpp"

namespace hearsay::mpi {

/// Before MPI_Init.
void prepare_process();
/// The thread level that the engine of this build needs.
int needed_thread_level();
/// Ends every rank of the job, whose ranks are `all`; never returns.
[[noreturn]] void end_job(CommunicatorHandle all, int exit_code);

}  // namespace hearsay::mpi

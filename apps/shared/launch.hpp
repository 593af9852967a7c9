#pragma once
// What the launcher tells a process about its job before MPI is initialised.

namespace hearsay {

/// Whether mpirun, srun or the like has started this process. Asking isatty() instead would be wrong under Open MPI: a
/// rank's stdout is a terminal even when mpirun's is not, and its stderr never is.
bool started_by_launcher();
/// This process's rank as the launcher has numbered it; 0 without a launcher.
int launched_rank();

/// One computing thread a rank unless OMP_NUM_THREADS says otherwise: ranks share the machine's cores. To be called
/// before LibTorch first computes.
void default_to_one_thread();

}  // namespace hearsay

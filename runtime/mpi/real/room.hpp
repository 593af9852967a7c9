#pragma once
// Whether this host has room for windows, asked before MPI is: it finds out in the middle, leaves files behind, or
// (MPICH) dies of SIGBUS. Included in runtime/mpi/ only.
#include <mpi.h>

#include <cstddef>
#include <string>

namespace hearsay::mpi {

/// Before MPI_Init. What ranks of one host share lies in files of /dev/shm, and containers have one of 64 MB. Where it
/// is that small, Open MPI is told to use the folder for temporary files, if that is on this host and has more room.
/// The user's own choice stays.
void choose_roomy_folder();

/// Collective. A window of `bytes` on this rank: throws CommunicationError, on all ranks the same, where /dev/shm (or
/// what the user has chosen) or a limit of a process is too small for it, with the size of both and what to do.
void require_room(std::size_t bytes, MPI_Comm ranks);

}  // namespace hearsay::mpi

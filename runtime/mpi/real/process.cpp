#include "runtime/mpi/process.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>

namespace hearsay::mpi {

/// Open MPI's ranks spin while they wait. Where ranks outnumber cores, a spinning one keeps a working one from running:
/// ask them to yield. The user's own choice stays.
void prepare_process() {
  const char* ranks_here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks_here == nullptr || std::atol(ranks_here) <= ::sysconf(_SC_NPROCESSORS_ONLN)) return;
  constexpr int keep = 0;
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", keep);
}

int needed_thread_level() { return MPI_THREAD_SERIALIZED; }

void end_job(CommunicatorHandle all, int exit_code) {
  MPI_Abort(all.as<MPI_Comm>(), exit_code);
  std::_Exit(exit_code);
}

}  // namespace hearsay::mpi

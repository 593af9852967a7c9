#pragma once
// Notices that the launcher keeps, under names (MPI_Publish_name): messages and collective operations would meet those
// of whoever uses the communicator besides. Written twice: in real/ and in simulated/.
#include <memory>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/transport/notices.hpp"

namespace hearsay::mpi {

/// Notices of the ranks of a communicator. To ask for one takes about 0.4 ms.
std::unique_ptr<hearsay::Notices> make_notices(CommunicatorHandle of);

}  // namespace hearsay::mpi

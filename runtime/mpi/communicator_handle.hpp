#pragma once
// A communicator of MPI's, carried where <mpi.h> is not known.
#include <cstdint>
#include <cstring>

namespace hearsay::mpi {

/// Which ranks take part. Copies the handle, not the communicator: that stays whoever's it is, and must outlive what is
/// made from it.
class CommunicatorHandle {
 public:
  /// From an MPI_Comm, whatever that is in the MPI at hand.
  template <class MpiComm>
  static CommunicatorHandle of(MpiComm communicator) {
    static_assert(sizeof communicator <= sizeof(std::uintptr_t));
    CommunicatorHandle handle;
    std::memcpy(&handle.bits_, &communicator, sizeof communicator);
    return handle;
  }
  /// From a Fortran handle, as other languages' bindings hand it out (mpi4py: comm.py2f()).
  static CommunicatorHandle from_fortran(int handle);

  template <class MpiComm>
  MpiComm as() const {
    MpiComm communicator;
    std::memcpy(&communicator, &bits_, sizeof communicator);
    return communicator;
  }

 private:
  std::uintptr_t bits_ = 0;
};

/// Every rank of the job: MPI_COMM_WORLD.
CommunicatorHandle all_ranks();

}  // namespace hearsay::mpi

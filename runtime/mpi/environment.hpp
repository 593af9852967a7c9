#pragma once
// MPI's lifetime, and what a rank may know about its job. No <mpi.h> here: it stays inside runtime/mpi/*.cpp.
#include <string>

#include "runtime/mpi/communicator_handle.hpp"

namespace hearsay::mpi {

/// MPI_Init_thread(MPI_THREAD_SERIALIZED) … MPI_Finalize; an MPI that is initialised already is adopted, and not
/// finalised. One per process, or per simulated rank. MPI errors become CommunicationError.
class Environment {
 public:
  /// The ranks of a communicator. Throws CommunicationError if MPI gives a lower thread level than SERIALIZED, and
  /// ConfigError if a launcher that this MPI does not know has started several processes (base/launchers.hpp): each
  /// would believe that it is alone.
  explicit Environment(CommunicatorHandle of = all_ranks());
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  CommunicatorHandle communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::string host() const;
  /// This rank's number among those that share its host's memory, from 0. Collective.
  int rank_on_host() const;
  /// "Open MPI v4.1.4, …" in one line.
  static std::string library_version();
  /// Whether the launcher leaves the others alone where a process has died (mpirun --enable-recovery).
  static bool launcher_recovers();
  /// Ends this process alone, as it is: MPI_Finalize would wait for processes that have died. What was printed has been
  /// flushed.
  [[noreturn]] static void leave(int exit_code);
  /// Ends every rank of the job with this exit code. May be called from any thread; never returns.
  [[noreturn]] static void abort(int exit_code);

 private:
  CommunicatorHandle communicator_;
  bool ends_mpi_ = false;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace hearsay::mpi

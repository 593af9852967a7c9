#pragma once
// MPI's lifetime, and what a rank may know about its job. No <mpi.h> here: it stays inside runtime/mpi/*.cpp.
#include <string>

namespace hearsay::mpi {

/// MPI_Init_thread(MPI_THREAD_SERIALIZED) … MPI_Finalize. One per process, or per simulated rank. MPI errors become CommunicationError.
class Environment {
 public:
  /// Throws CommunicationError if MPI gives a lower thread level than SERIALIZED, or if the launcher belongs to another
  /// MPI, so that every process believes that it is alone.
  Environment();
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::string host() const;
  /// This rank's number among those that share its host's memory, from 0. Collective.
  int rank_on_host() const;
  /// "Open MPI v4.1.4, …" in one line.
  static std::string library_version();
  /// Ends every rank of the job with this exit code. May be called from any thread; never returns.
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace hearsay::mpi

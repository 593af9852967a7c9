#pragma once
// MPI's lifetime, and the job that it has started. No <mpi.h> here: it stays inside runtime/mpi/*.cpp.
#include <string>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::mpi {

/// MPI_Init_thread(MPI_THREAD_SERIALIZED) … MPI_Finalize; an MPI that is initialised already is adopted, and not
/// finalised. One per process, or per simulated rank. MPI errors become CommunicationError.
class Environment final : public Job {
 public:
  /// What this process does where MPI knows of it only.
  enum class Alone {
    refused_if_launched,  ///< throws ConfigError if a launcher that this MPI does not know has started several
                          ///< processes (base/launchers.hpp): each would believe that it is alone
    allowed
  };

  /// The ranks of a communicator. Throws CommunicationError if MPI gives a lower thread level than SERIALIZED.
  explicit Environment(CommunicatorHandle of = all_ranks(), Alone alone = Alone::refused_if_launched);
  ~Environment() override;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string host() const override;
  int ranks_on_host() const override;
  int rank_on_host() const override;
  using Job::communicator;
  std::unique_ptr<hearsay::Communicator> communicator(std::function<void()> idle) const override;
  std::unique_ptr<hearsay::Transport> transport() const override;
  hearsay::Notices& notices() override { return *notices_; }
  bool outlives_a_rank() const override { return launcher_recovers(); }
  [[noreturn]] void abort(int exit_code) const override;

  /// "Open MPI v4.1.4, …" in one line.
  static std::string library_version();
  /// Whether the launcher leaves the others alone where a process has died (mpirun --enable-recovery).
  static bool launcher_recovers();

 private:
  CommunicatorHandle communicator_;
  std::unique_ptr<hearsay::Notices> notices_;
  bool ends_mpi_ = false;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace hearsay::mpi

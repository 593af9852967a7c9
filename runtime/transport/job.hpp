#pragma once
// The processes that were started together to train, and the means by which they talk: mpi::Environment, or
// sockets::Job without MPI. runtime/job/ finds out which of them this process belongs to.
#include <functional>
#include <memory>
#include <string>

#include "runtime/transport/communicator.hpp"
#include "runtime/transport/late_members.hpp"
#include "runtime/transport/notices.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay {

/// One per process, or per simulated rank. It outlives what it makes. What is collective is called by all ranks in the
/// same order, and throws CommunicationError.
class Job {
 public:
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  virtual int rank() const = 0;
  /// How many have started together; one that comes later has a higher rank.
  virtual int ranks() const = 0;
  /// This host's name, for people.
  virtual std::string host() const = 0;
  /// How many ranks are on this host, as far as the launcher says it.
  virtual int ranks_on_host() const = 0;
  /// This rank's number among those that share its host's memory, from 0. Collective.
  virtual int rank_on_host() const = 0;
  /// Collective. `idle` runs while an operation waits.
  virtual std::unique_ptr<Communicator> communicator(std::function<void()> idle) const = 0;
  virtual std::unique_ptr<Transport> transport() const = 0;  ///< Collective.
  virtual Notices& notices() = 0;
  /// Null where nobody can come after the start.
  virtual LateMembers* late_members() const { return nullptr; }
  /// Whether the others may go on where a process has died: nobody ends them.
  virtual bool outlives_a_rank() const = 0;
  /// Ends every rank of the job with this exit code. Any thread; never returns.
  [[noreturn]] virtual void abort(int exit_code) const = 0;

  std::unique_ptr<Communicator> communicator() const {
    return communicator([] {});
  }

 protected:
  Job() = default;
};

}  // namespace hearsay

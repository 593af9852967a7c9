#pragma once
// A job without MPI: processes that have met (meeting.hpp) and are connected, all to all.
#include <memory>
#include <string>

#include "runtime/sockets/network.hpp"
#include "runtime/sockets/notices.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::sockets {

class Job final : public hearsay::Job {
 public:
  /// Collective.
  explicit Job(std::shared_ptr<Network> network);

  int rank() const override { return network_->rank(); }
  int ranks() const override { return network_->ranks(); }
  std::string host() const override;
  int ranks_on_host() const override;
  /// Not collective here: all know who is where.
  int rank_on_host() const override;
  using hearsay::Job::communicator;
  std::unique_ptr<hearsay::Communicator> communicator(std::function<void()> idle) const override;
  std::unique_ptr<hearsay::Transport> transport() const override;
  hearsay::Notices& notices() override { return notices_; }
  /// What has started the processes may end them all the same.
  bool outlives_a_rank() const override { return true; }
  /// Ends this process, which the others take for a death: those who do not go on without it end, too.
  [[noreturn]] void abort(int exit_code) const override;

 private:
  std::shared_ptr<Network> network_;
  Notices notices_;
};

}  // namespace hearsay::sockets

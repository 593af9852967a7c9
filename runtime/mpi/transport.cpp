#include "runtime/mpi/transport.hpp"

#include <utility>

#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/process.hpp"

namespace hearsay::mpi {

// Own loops may have started MPI by themselves, without an Environment.
Transport::Transport(CommunicatorHandle of) : communicator_([this] { idle_(); }, of) { require_whole_job(); }

Clock Transport::clock() const { return mpi::clock(); }

hearsay::Peers& Transport::open_peers(Hooks hooks) {
  idle_ = hooks.idle;
  return peers_.emplace(hooks, communicator_.handle());
}

std::unique_ptr<CommunicationEngine> Transport::make_engine(ProgressStep step) {
  return mpi::make_engine(std::move(step), *window_);
}

void Transport::pass_time(double seconds, CommunicationEngine& engine) { mpi::pass_time(seconds, engine, *window_); }

}  // namespace hearsay::mpi

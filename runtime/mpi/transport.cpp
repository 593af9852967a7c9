#include "runtime/mpi/transport.hpp"

#include <utility>

#include "runtime/mpi/driver.hpp"

namespace hearsay::mpi {

Transport::Transport(CommunicatorHandle of) : communicator_([this] { idle_(); }, of) {}

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

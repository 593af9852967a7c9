#include "runtime/mpi/transport.hpp"

#include <chrono>
#include <utility>

#include "runtime/mpi/driver.hpp"

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

void Transport::pass_time(double seconds, CommunicationEngine& engine) {
  const auto rest = [end = mpi::clock()() + std::chrono::duration<double>(seconds)] {
    return std::chrono::duration<double>(end - mpi::clock()()).count();
  };
  constexpr double resolution_s = 1e-9;  // of a Clock
  engine.poll();
  for (double left = rest(); left >= resolution_s; left = rest()) {
    window_->wait(left);
    engine.poll();
  }
}

}  // namespace hearsay::mpi

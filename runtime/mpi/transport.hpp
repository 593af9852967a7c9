#pragma once
// MPI as a Transport.
#include <optional>

#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay::mpi {

class Transport final : public hearsay::Transport {
 public:
  /// The ranks of a communicator, of which duplicates are used. Collective.
  explicit Transport(CommunicatorHandle of);

  int rank() const override { return communicator_.rank(); }
  int ranks() const override { return communicator_.size(); }
  Clock clock() const override;
  RemoteMemory& open_memory(std::size_t bytes, const MemoryUse& use) override {
    return window_.emplace(bytes, communicator_.handle(), use);
  }
  hearsay::Peers& open_peers(Hooks hooks) override;
  std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step) override;
  void barrier() override { communicator_.barrier(); }
  void broadcast(std::span<std::byte> bytes, int root) override { communicator_.broadcast(bytes, root); }
  void pass_time(double seconds, CommunicationEngine& engine) override;

 private:
  std::function<void()> idle_ = [] {};
  Communicator communicator_;
  std::optional<Peers> peers_;
  std::optional<Window> window_;
};

}  // namespace hearsay::mpi

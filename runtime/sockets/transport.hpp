#pragma once
// Sockets and shared memory as a Transport: no MPI.
#include <memory>
#include <optional>

#include "runtime/sockets/messages.hpp"
#include "runtime/sockets/peers.hpp"
#include "runtime/sockets/window.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay::sockets {

class Transport final : public hearsay::Transport {
 public:
  explicit Transport(std::shared_ptr<Network> network);

  int rank() const override { return network_->rank(); }
  int ranks() const override { return network_->ranks(); }
  Clock clock() const override { return steady_time; }
  RemoteMemory& open_memory(std::size_t bytes, const MemoryUse& use) override;
  hearsay::Peers& open_peers(Hooks hooks) override;
  std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step) override;
  void barrier() override { messages_.barrier(idle_); }
  void broadcast(std::span<std::byte> bytes, int root) override { messages_.broadcast(bytes, root, idle_); }
  void pass_time(double seconds, CommunicationEngine& engine) override;

 private:
  std::shared_ptr<Network> network_;
  Network::Idle idle_ = [] {};
  Messages messages_;
  std::optional<Peers> peers_;
  std::optional<Window> window_;
};

}  // namespace hearsay::sockets

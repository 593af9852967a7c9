#pragma once
// Point-to-point messages over sockets.
#include <memory>

#include "runtime/sockets/messages.hpp"
#include "runtime/transport/peers.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay::sockets {

class Peers final : public hearsay::Peers {
 public:
  using Hooks = hearsay::Transport::Hooks;
  /// Collective, as every channel.
  explicit Peers(std::shared_ptr<Network> network, Hooks hooks = {});

  int rank() const override { return messages_.rank(); }
  int size() const override { return messages_.ranks(); }
  void exchange(int to, const Message& out, int from, std::vector<std::byte>& in) override;
  void exchange(int to, const Message& out, int from, std::span<std::byte> in) override;
  /// A ring of parts (collectives/ring.hpp), booked as one message, as that of an MPI library.
  void library_sum(std::span<float> values) override;
  std::vector<int> nodes() const override { return messages_.members().nodes(); }

 private:
  RawBytes pass(int to, const Message& out, int from);

  Messages messages_;
  Hooks hooks_;
  bool counts_ = true;
};

}  // namespace hearsay::sockets

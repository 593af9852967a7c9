#pragma once
// Messages of any length between two members, whole and in order. Included in runtime/sockets/ only.
#include <deque>
#include <vector>

#include "runtime/sockets/network.hpp"

namespace hearsay::sockets {

class Messages final : public Channel {
 public:
  static constexpr int nobody = -1;

  explicit Messages(std::shared_ptr<Network> network);
  ~Messages() override { shut(); }

  int rank() const { return network().rank(); }
  int ranks() const { return network().ranks(); }
  int founders() const { return network().founders(); }
  const Network& members() const { return network(); }
  /// Sends to one member and receives from one, both at the same time; either may be nobody. Runs `idle` meanwhile;
  /// what that throws leaves the message on its way. Messages of another tag are for others. Throws CommunicationError;
  /// where others go on without the dead, it waits until `idle` knows of the death.
  RawBytes exchange(int to, std::span<const std::byte> out, int from, const Network::Idle& idle, std::uint64_t tag = 0);
  /// Returns when all founders have come.
  void barrier(const Network::Idle& idle);
  void broadcast(std::span<std::byte> bytes, int root, const Network::Idle& idle);

  void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) override;

 private:
  struct Letter {
    std::uint64_t tag;
    RawBytes bytes;
  };
  std::vector<std::deque<Letter>> boxes_;  // of each member, what has come
};

}  // namespace hearsay::sockets

#pragma once
// Collective operations over sockets, all of them through the first member, by messages.
#include <cstdint>
#include <memory>

#include "runtime/sockets/messages.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay::sockets {

class Communicator final : public hearsay::Communicator {
 public:
  Communicator(std::shared_ptr<Network> network, Network::Idle idle);

  void keep(std::vector<int> members, std::uint64_t attempt) override;
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  void barrier() override;
  bool barrier_within(double seconds) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void sum(std::span<float> values) override;
  void sum(std::span<double> values) override;
  void minimum(std::span<double> values) override;
  void maximum(std::span<double> values) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override;

 private:
  template <class T, class Combine>
  void reduce(std::span<T> values, Combine combine);
  void send_to(int member, std::span<const std::byte> bytes);
  RawBytes receive_from(int member);
  void receive_from(int member, std::span<std::byte> bytes);

  Messages messages_;
  Network::Idle idle_;
  std::vector<int> members_;
  int rank_;
  std::uint64_t tag_ = 0;  // of what these members say
};

}  // namespace hearsay::sockets

#pragma once
// Point-to-point messages over MPI.
#include <functional>
#include <memory>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/mpi/pieces.hpp"
#include "runtime/transport/peers.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay::mpi {

/// The ranks of a communicator, on a duplicate of it. Collective to make.
class Peers final : public hearsay::Peers {
 public:
  using Hooks = hearsay::Transport::Hooks;
  explicit Peers(const Hooks& hooks = {}, CommunicatorHandle of = all_ranks());
  ~Peers() override;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int to, const Message& out, int from, std::vector<std::byte>& in) override;
  void exchange(int to, const Message& out, int from, std::span<std::byte> in) override;
  void library_sum(std::span<float> values) override;
  std::vector<int> nodes() const override { return nodes_; }
  /// Longer messages travel in pieces of so many bytes (4 or more), from now on; the same on all ranks.
  void split_at(std::size_t piece_bytes) { piece_bytes_ = piece_bytes; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  Hooks hooks_;
  int rank_ = 0, size_ = 1;
  std::vector<int> nodes_;
  std::size_t piece_bytes_ = longest_piece;
};

}  // namespace hearsay::mpi

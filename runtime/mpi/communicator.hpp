#pragma once
// Collective operations over MPI.
#include <cstdint>
#include <memory>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/mpi/pieces.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay::mpi {

/// A duplicate of a communicator.
class Communicator final : public hearsay::Communicator {
 public:
  explicit Communicator(
      std::function<void()> idle = [] {}, CommunicatorHandle of = all_ranks());
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void keep(std::vector<int> members, std::uint64_t attempt) override;
  CommunicatorHandle handle() const;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  bool barrier_within(double seconds) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void sum(std::span<float> values) override;
  void sum(std::span<double> values) override;
  void minimum(std::span<double> values) override;
  void maximum(std::span<double> values) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override;
  /// What is longer travels in pieces of so many bytes (8 or more), from now on; the same on all ranks.
  void split_at(std::size_t piece_bytes) { piece_bytes_ = piece_bytes; }

 private:
  template <class T, class Combine>
  void reduce_among_members(std::span<T> values, Combine combine);
  void send_to(int member, std::span<const std::byte> bytes);
  void receive_from(int member, std::span<std::byte> bytes);
  void gather_round(std::span<const std::byte> part, std::span<const std::uint64_t> lengths, std::size_t done,
                    std::size_t share, std::vector<std::vector<std::byte>>& all);

  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::function<void()> idle_;
  int rank_ = 0;
  int size_ = 1;
  std::size_t piece_bytes_ = longest_piece;
  std::vector<int> members_;  // empty: all
  int tag_ = 0;               // of messages between them
};

}  // namespace hearsay::mpi

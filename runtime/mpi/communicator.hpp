#pragma once
// The few collective operations that training needs beside the mailbox: start, evaluation, end.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/mpi/pieces.hpp"

namespace hearsay::mpi {

/// A duplicate of a communicator. Every operation is collective, in the same order on all ranks, and runs `idle` while
/// it waits, so that mailboxes go on being served. Sums are the same on every rank. Throws CommunicationError.
class Communicator {
 public:
  explicit Communicator(
      std::function<void()> idle = [] {}, CommunicatorHandle of = all_ranks());
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// From now on only these ranks (of the communicator, ascending, this one among them) take part: the others are
  /// dead. `rank` and `size` count them. Operations go through the first of them, by messages, so that one that ends
  /// with an exception of `idle` can be begun again with fewer. All members, with the same list.
  void keep(std::vector<int> members);

  CommunicatorHandle handle() const;
  int rank() const { return rank_; }
  int size() const { return size_; }
  void barrier();
  /// False if not every rank has arrived within `seconds`; the communicator must not be used again then.
  bool barrier_within(double seconds);
  void broadcast(std::span<std::byte> bytes, int root);
  void sum(std::span<float> values);
  void sum(std::span<double> values);
  void minimum(std::span<double> values);
  void maximum(std::span<double> values);
  /// Every rank's bytes on rank 0, in rank order; empty elsewhere.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes);
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

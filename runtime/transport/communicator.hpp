#pragma once
// The few collective operations that training needs beside the mailbox: start, evaluation, end.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace hearsay {

/// Every operation is collective, in the same order on all ranks, and runs the `idle` that it was made with while it
/// waits, so that mailboxes go on being served. Sums are the same on every rank. Throws CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// From now on only these ranks (of those that it was made for, ascending, this one among them) take part: the
  /// others are dead. `rank` and `size` count them. Operations go through the first of them, by messages, so that one
  /// that ends with an exception of `idle` can be begun again with fewer. All members, with the same list, and the
  /// same number of the attempt: what was said in another attempt is not taken for what is said in this one.
  virtual void keep(std::vector<int> members, std::uint64_t attempt = 0) = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// False if not every rank has arrived within `seconds`; the communicator must not be used again then.
  virtual bool barrier_within(double seconds) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual void sum(std::span<float> values) = 0;
  virtual void sum(std::span<double> values) = 0;
  virtual void minimum(std::span<double> values) = 0;
  virtual void maximum(std::span<double> values) = 0;
  /// Every rank's bytes on rank 0, in rank order; empty elsewhere.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;
};

}  // namespace hearsay

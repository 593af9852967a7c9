#pragma once
// Point-to-point messages between the ranks of a job: all that the collectives of the global path are made of.
//
// Collectives are written against this interface and not against MPI, so that they run in one process under test and on
// a simulated cluster. Messages between two ranks arrive whole and in order.
#include <cstddef>
#include <span>
#include <vector>

namespace hearsay {

/// One message. Bytes that are neither payload nor index are headers; the split is for the ledger.
struct Message {
  std::span<const std::byte> bytes{};
  std::size_t payload_bytes = 0;  ///< values
  std::size_t index_bytes = 0;    ///< positions
};

/// Not thread-safe: belongs to the communication thread once that runs. Every operation throws CommunicationError, and
/// what the job's interruption throws (a stop signal, in training).
class Peers {
 public:
  static constexpr int nobody = -1;

  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `out` to rank `to` and receives from rank `from`, both at the same time; either may be nobody, neither may
  /// be this rank. `in` becomes what has come.
  virtual void exchange(int to, const Message& out, int from, std::vector<std::byte>& in) = 0;
  /// The same where the receiver knows the length: exactly in.size() bytes must come.
  virtual void exchange(int to, const Message& out, int from, std::span<std::byte> in) = 0;
  /// values ← Σ over ranks, by the library's own all-reduce; the same bits on every rank.
  virtual void library_sum(std::span<float> values) = 0;
  /// Which machine every rank runs on: ranks that share memory have the same number, numbered from 0 in the order of
  /// their first ranks.
  virtual std::vector<int> nodes() const = 0;

  void send(int to, const Message& out) { exchange(to, out, nobody, std::span<std::byte>{}); }
  std::vector<std::byte> receive(int from) {
    std::vector<std::byte> in;
    exchange(nobody, {}, from, in);
    return in;
  }
};

/// Some ranks in a fixed order, of which this rank is one: what a collective runs over.
class Group {
 public:
  /// All ranks.
  explicit Group(Peers& peers);
  /// `members` in the order of the group, the same on all of them; contains `peers.rank()` (std::logic_error).
  Group(Peers& peers, std::vector<int> members);

  Peers& peers() const { return *peers_; }
  int index() const { return index_; }
  int size() const { return static_cast<int>(members_.size()); }
  /// Rank of a member.
  int member(int index) const { return members_[static_cast<std::size_t>(index)]; }

 private:
  Peers* peers_;
  std::vector<int> members_;
  int index_ = 0;
};

}  // namespace hearsay

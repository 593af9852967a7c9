#pragma once
// Messages of any length between two ranks. Included in runtime/mpi/*.cpp only.
//
// A message travels as pieces of an agreed length and a shorter last one, which may be empty: so its end is known to a
// receiver that does not know its length. Almost every message is its own last piece.
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace hearsay::mpi {

/// Messages under way. One that is given up (an exception from `idle`) is left to MPI: the job ends then.
class Messages {
 public:
  /// `piece_bytes` > 0, the same on all ranks.
  Messages(MPI_Comm communicator, std::size_t piece_bytes) : communicator_(communicator), piece_bytes_(piece_bytes) {}

  /// Starts; `bytes` must stay until `wait` returns.
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);
  /// Receives a message of unknown length, running `idle` meanwhile.
  void receive_whole(std::vector<std::byte>& bytes, int from, const std::function<void()>& idle);
  /// Until all that was started is over, running `idle` meanwhile.
  void wait(const std::function<void()>& idle);

 private:
  MPI_Request& add() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  MPI_Comm communicator_;
  std::size_t piece_bytes_;
  std::vector<MPI_Request> requests_;
};

}  // namespace hearsay::mpi

#include "runtime/mpi/messages.hpp"

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/pieces.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

constexpr int tag = 1;

/// The pieces of a message: the last one is shorter than the others.
template <class Byte, class Each>
void for_each_piece_of_message(std::span<Byte> bytes, std::size_t piece_bytes, Each each) {
  for_each_piece(bytes, piece_bytes, each);
  if (bytes.size() % piece_bytes == 0) each(bytes.last(0));
}

}  // namespace

void Messages::send(std::span<const std::byte> bytes, int to) {
  for_each_piece_of_message(bytes, piece_bytes_, [&](std::span<const std::byte> piece) {
    check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, tag, communicator_, &add()),
          "MPI_Isend");
  });
}

void Messages::receive(std::span<std::byte> bytes, int from) {
  for_each_piece_of_message(bytes, piece_bytes_, [&](std::span<std::byte> piece) {
    check(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, tag, communicator_, &add()),
          "MPI_Irecv");
  });
}

void Messages::receive_whole(std::vector<std::byte>& bytes, int from, const std::function<void()>& idle) {
  bytes.clear();
  std::size_t before = 0;
  do {
    before = bytes.size();
    receive_behind(bytes, {.from = from, .tag = tag, .most_bytes = piece_bytes_}, communicator_, idle);
  } while (bytes.size() - before == piece_bytes_);
}

void Messages::wait(const std::function<void()>& idle) { complete(requests_, idle); }

}  // namespace hearsay::mpi

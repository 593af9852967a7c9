#include "runtime/mpi/peers.hpp"

#include <mpi.h>

#include <algorithm>
#include <string>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/messages.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

std::vector<int> find_nodes(MPI_Comm communicator, int rank, int size) {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int first = rank;
  check(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  std::vector<int> firsts(static_cast<std::size_t>(size));
  check(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, communicator), "MPI_Allgather");
  std::vector<int> distinct(firsts);
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (int& f : firsts) f = static_cast<int>(std::ranges::lower_bound(distinct, f) - distinct.begin());
  return firsts;
}

}  // namespace

struct Peers::Handle {
  MPI_Comm communicator = MPI_COMM_NULL;
};

Peers::Peers(const Hooks& hooks, CommunicatorHandle of) : handle_(std::make_unique<Handle>()), hooks_(hooks) {
  check(MPI_Comm_dup(of.as<MPI_Comm>(), &handle_->communicator), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(handle_->communicator, MPI_ERRORS_RETURN);
  MPI_Comm_rank(handle_->communicator, &rank_);
  MPI_Comm_size(handle_->communicator, &size_);
  nodes_ = find_nodes(handle_->communicator, rank_, size_);
}

Peers::~Peers() {
  if (handle_->communicator != MPI_COMM_NULL) MPI_Comm_free(&handle_->communicator);
}

void Peers::exchange(int to, const Message& out, int from, std::vector<std::byte>& in) {
  Messages messages(handle_->communicator, piece_bytes_);
  if (to != nobody) {
    hooks_.sent(to, out);
    messages.send(out.bytes, to);
  }
  if (from != nobody) messages.receive_whole(in, from, hooks_.idle);
  if (to != nobody) messages.wait(hooks_.idle);
}

void Peers::exchange(int to, const Message& out, int from, std::span<std::byte> in) {
  Messages messages(handle_->communicator, piece_bytes_);
  if (from != nobody) messages.receive(in, from);
  if (to != nobody) {
    hooks_.sent(to, out);
    messages.send(out.bytes, to);
  }
  messages.wait(hooks_.idle);
}

void Peers::library_sum(std::span<float> values) {
  // How many bytes go where is the library's own affair: what it is given is booked once.
  if (size_ > 1)
    hooks_.sent((rank_ + 1) % size_, {.bytes = std::as_bytes(values), .payload_bytes = values.size_bytes()});
  for_each_piece(values, piece_bytes_, [&](std::span<float> piece) {
    const auto count = static_cast<int>(piece.size());
    all_reduce(piece.data(), count, MPI_FLOAT, MPI_SUM, handle_->communicator, hooks_.idle);
  });
}

}  // namespace hearsay::mpi

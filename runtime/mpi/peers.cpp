#include "runtime/mpi/peers.hpp"

#include <mpi.h>

#include <algorithm>
#include <string>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

constexpr int tag = 1;
constexpr std::size_t piece = std::size_t{1} << 30;  // bytes per MPI call: counts are ints

/// Requests that are all over when `wait` returns. One that is given up (an exception from `idle`) is left to MPI: the
/// job ends then.
class Requests {
 public:
  void start_send(std::span<const std::byte> bytes, int to, MPI_Comm communicator) {
    std::size_t done = 0;
    do {
      const auto part = bytes.subspan(done, std::min(piece, bytes.size() - done));
      check(MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, to, tag, communicator, &add()),
            "MPI_Isend");
      done += part.size();
    } while (done < bytes.size());
  }
  void start_receive(std::span<std::byte> bytes, int from, MPI_Comm communicator) {
    std::size_t done = 0;
    do {
      const auto part = bytes.subspan(done, std::min(piece, bytes.size() - done));
      check(MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, from, tag, communicator, &add()),
            "MPI_Irecv");
      done += part.size();
    } while (done < bytes.size());
  }
  void wait(const std::function<void()>& idle) { complete(requests_, idle); }

 private:
  MPI_Request& add() { return requests_.emplace_back(MPI_REQUEST_NULL); }
  std::vector<MPI_Request> requests_;
};

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
  Requests requests;
  if (to != nobody) {
    hooks_.sent(to, out);
    requests.start_send(out.bytes, to, handle_->communicator);
  }
  if (from != nobody) receive_any_length(from, tag, handle_->communicator, hooks_.idle, in);
  if (to != nobody) requests.wait(hooks_.idle);
}

void Peers::exchange(int to, const Message& out, int from, std::span<std::byte> in) {
  Requests requests;
  if (from != nobody) requests.start_receive(in, from, handle_->communicator);
  if (to != nobody) {
    hooks_.sent(to, out);
    requests.start_send(out.bytes, to, handle_->communicator);
  }
  requests.wait(hooks_.idle);
}

void Peers::library_sum(std::span<float> values) {
  constexpr std::size_t floats = piece / sizeof(float);
  // How many bytes go where is the library's own affair: what it is given is booked once.
  if (size_ > 1)
    hooks_.sent((rank_ + 1) % size_, {.bytes = std::as_bytes(values), .payload_bytes = values.size_bytes()});
  for (std::size_t done = 0; done < values.size(); done += floats) {
    const auto part = values.subspan(done, std::min(floats, values.size() - done));
    all_reduce(part.data(), static_cast<int>(part.size()), MPI_FLOAT, MPI_SUM, handle_->communicator, hooks_.idle);
  }
}

}  // namespace hearsay::mpi

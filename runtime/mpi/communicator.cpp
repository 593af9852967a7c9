#include "runtime/mpi/communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <numeric>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

constexpr std::size_t piece = std::size_t{1} << 28;  // elements per MPI call: counts are ints

template <class T>
void reduce(std::span<T> values, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator,
            const std::function<void()>& idle) {
  for (std::size_t done = 0; done < values.size(); done += piece) {
    const auto count = static_cast<int>(std::min(piece, values.size() - done));
    all_reduce(values.data() + done, count, type, operation, communicator, idle);
  }
}

}  // namespace

struct Communicator::Handle {
  MPI_Comm communicator = MPI_COMM_NULL;
};

Communicator::Communicator(std::function<void()> idle, CommunicatorHandle of)
    : handle_(std::make_unique<Handle>()), idle_(std::move(idle)) {
  check(MPI_Comm_dup(of.as<MPI_Comm>(), &handle_->communicator), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(handle_->communicator, MPI_ERRORS_RETURN);
  MPI_Comm_rank(handle_->communicator, &rank_);
  MPI_Comm_size(handle_->communicator, &size_);
}

Communicator::~Communicator() {
  if (handle_->communicator != MPI_COMM_NULL) MPI_Comm_free(&handle_->communicator);
}

CommunicatorHandle Communicator::handle() const { return CommunicatorHandle::of(handle_->communicator); }

void Communicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(handle_->communicator, &request), "MPI_Ibarrier");
  complete({&request, 1}, idle_);
}

bool Communicator::barrier_within(double seconds) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(handle_->communicator, &request), "MPI_Ibarrier");
  return complete({&request, 1}, idle_, seconds);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  for (std::size_t done = 0; done < bytes.size(); done += piece) {
    const auto count = static_cast<int>(std::min(piece, bytes.size() - done));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(bytes.data() + done, count, MPI_BYTE, root, handle_->communicator, &request), "MPI_Ibcast");
    complete({&request, 1}, idle_);
  }
}

void Communicator::sum(std::span<float> values) { reduce(values, MPI_FLOAT, MPI_SUM, handle_->communicator, idle_); }
void Communicator::sum(std::span<double> values) { reduce(values, MPI_DOUBLE, MPI_SUM, handle_->communicator, idle_); }
void Communicator::minimum(std::span<double> values) {
  reduce(values, MPI_DOUBLE, MPI_MIN, handle_->communicator, idle_);
}
void Communicator::maximum(std::span<double> values) {
  reduce(values, MPI_DOUBLE, MPI_MAX, handle_->communicator, idle_);
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> bytes) {
  const int length = static_cast<int>(bytes.size());
  std::vector<int> lengths(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, handle_->communicator, &request),
        "MPI_Igather");
  complete({&request, 1}, idle_);
  std::vector<int> starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
  std::vector<std::byte> all(lengths.empty() ? 0 : static_cast<std::size_t>(starts.back() + lengths.back()));
  check(MPI_Igatherv(bytes.data(), length, MPI_BYTE, all.data(), lengths.data(), starts.data(), MPI_BYTE, 0,
                     handle_->communicator, &request),
        "MPI_Igatherv");
  complete({&request, 1}, idle_);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto first = all.begin() + starts[r];
    result.emplace_back(first, first + lengths[r]);
  }
  return result;
}

}  // namespace hearsay::mpi

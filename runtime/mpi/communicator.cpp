#include "runtime/mpi/communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

struct Reduction {
  MPI_Datatype type;
  MPI_Op operation;
  MPI_Comm communicator;
};

template <class T>
void reduce(std::span<T> values, std::size_t piece_bytes, const Reduction& reduction,
            const std::function<void()>& idle) {
  for_each_piece(values, piece_bytes, [&](std::span<T> piece) {
    const auto count = static_cast<int>(piece.size());
    all_reduce(piece.data(), count, reduction.type, reduction.operation, reduction.communicator, idle);
  });
}

/// How much of so many bytes belongs to the round that begins at `done`.
std::size_t part_in_round(std::uint64_t length, std::size_t done, std::size_t share) {
  return length > done ? std::min<std::size_t>(share, length - done) : 0;
}

/// So that messages of another attempt are not taken for those of this one.
int tag_of(const std::vector<int>& members, std::uint64_t attempt) {
  constexpr unsigned tags = 32000;  // MPI promises 32767
  unsigned hash = 2166136261U;      // FNV-1a
  const auto add = [&hash](unsigned word) { hash = (hash ^ word) * 16777619U; };
  add(static_cast<unsigned>(attempt)), add(static_cast<unsigned>(attempt >> 32U));
  for (const int member : members) add(static_cast<unsigned>(member));
  return static_cast<int>(hash % tags) + 1;
}

/// Waits for a request whose buffer is a copy. Where `idle` throws, the other end may have died and MPI may still use
/// the buffer: it is given up for good.
void complete_copy(MPI_Request request, std::unique_ptr<std::vector<std::byte>>& copy,
                   const std::function<void()>& idle) {
  constexpr double until_idle_throws = 1e12;
  try {
    complete({&request, 1}, idle, until_idle_throws);
  } catch (...) {
    static_cast<void>(copy.release());
    throw;
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

void Communicator::keep(std::vector<int> members, std::uint64_t attempt) {
  int rank = 0;
  MPI_Comm_rank(handle_->communicator, &rank);
  rank_ = static_cast<int>(std::ranges::find(members, rank) - members.begin());
  size_ = static_cast<int>(members.size());
  tag_ = tag_of(members, attempt);
  members_ = std::move(members);
}

void Communicator::send_to(int member, std::span<const std::byte> bytes) {
  for_each_piece(bytes, piece_bytes_, [&](std::span<const std::byte> piece) {
    auto copy = std::make_unique<std::vector<std::byte>>(piece.begin(), piece.end());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(copy->data(), static_cast<int>(copy->size()), MPI_BYTE, members_[static_cast<std::size_t>(member)],
                    tag_, handle_->communicator, &request),
          "MPI_Isend");
    complete_copy(request, copy, idle_);
  });
}

void Communicator::receive_from(int member, std::span<std::byte> bytes) {
  for_each_piece(bytes, piece_bytes_, [&](std::span<std::byte> piece) {
    auto copy = std::make_unique<std::vector<std::byte>>(piece.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(copy->data(), static_cast<int>(copy->size()), MPI_BYTE, members_[static_cast<std::size_t>(member)],
                    tag_, handle_->communicator, &request),
          "MPI_Irecv");
    complete_copy(request, copy, idle_);
    std::ranges::copy(*copy, piece.begin());
  });
}

// In the order of ranks, on the first of them: the same bits for all.
template <class T, class Combine>
void Communicator::reduce_among_members(std::span<T> values, Combine combine) {
  if (rank_ != 0) {
    send_to(0, std::as_bytes(values));
    receive_from(0, std::as_writable_bytes(values));
    return;
  }
  std::vector<T> theirs(values.size());
  for (int member = 1; member < size_; ++member) {
    receive_from(member, std::as_writable_bytes(std::span(theirs)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], theirs[i]);
  }
  for (int member = 1; member < size_; ++member) send_to(member, std::as_bytes(values));
}

CommunicatorHandle Communicator::handle() const { return CommunicatorHandle::of(handle_->communicator); }

void Communicator::barrier() {
  double none = 0.0;
  if (!members_.empty()) return sum(std::span(&none, 1));
  mpi::barrier(handle_->communicator, idle_);
}

bool Communicator::barrier_within(double seconds) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(handle_->communicator, &request), "MPI_Ibarrier");
  return complete({&request, 1}, idle_, seconds);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  if (!members_.empty()) {
    for (int member = 0; rank_ == root && member < size_; ++member)
      if (member != root) send_to(member, bytes);
    if (rank_ != root) receive_from(root, bytes);
    return;
  }
  for_each_piece(bytes, piece_bytes_, [&](std::span<std::byte> piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, handle_->communicator, &request),
          "MPI_Ibcast");
    complete({&request, 1}, idle_);
  });
}

void Communicator::sum(std::span<float> values) {
  if (!members_.empty()) return reduce_among_members(values, std::plus<float>());
  reduce(values, piece_bytes_, {MPI_FLOAT, MPI_SUM, handle_->communicator}, idle_);
}
void Communicator::sum(std::span<double> values) {
  if (!members_.empty()) return reduce_among_members(values, std::plus<double>());
  reduce(values, piece_bytes_, {MPI_DOUBLE, MPI_SUM, handle_->communicator}, idle_);
}
void Communicator::minimum(std::span<double> values) {
  if (!members_.empty()) return reduce_among_members(values, [](double a, double b) { return std::min(a, b); });
  reduce(values, piece_bytes_, {MPI_DOUBLE, MPI_MIN, handle_->communicator}, idle_);
}
void Communicator::maximum(std::span<double> values) {
  if (!members_.empty()) return reduce_among_members(values, [](double a, double b) { return std::max(a, b); });
  reduce(values, piece_bytes_, {MPI_DOUBLE, MPI_MAX, handle_->communicator}, idle_);
}

// In rounds of as many bytes as one call of MPI may receive.
std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  if (!members_.empty() && rank_ != 0) {
    send_to(0, std::as_bytes(std::span(&length, 1)));
    send_to(0, bytes);
    return {};
  }
  if (!members_.empty()) {
    std::vector<std::vector<std::byte>> all{{bytes.begin(), bytes.end()}};
    for (int member = 1; member < size_; ++member) {
      std::uint64_t theirs = 0;
      receive_from(member, std::as_writable_bytes(std::span(&theirs, 1)));
      receive_from(member, all.emplace_back(theirs));
    }
    return all;
  }
  std::vector<std::uint64_t> lengths(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
  const std::vector<int> words(lengths.size(), sizeof length);
  mpi::gather(std::as_bytes(std::span(&length, 1)), words, std::as_writable_bytes(std::span(lengths)),
              handle_->communicator, idle_);
  double longest = static_cast<double>(length);
  maximum({&longest, 1});
  std::vector<std::vector<std::byte>> all(lengths.size());
  const std::size_t share = std::max<std::size_t>(piece_bytes_ / static_cast<std::size_t>(size_), 1);
  for (std::size_t done = 0; done < static_cast<std::size_t>(longest); done += share)
    gather_round(bytes.subspan(std::min(done, bytes.size())).first(part_in_round(length, done, share)), lengths, done,
                 share, all);
  return all;
}

/// Appends to `all`, on rank 0, what every rank brings to the round that begins at `done`.
void Communicator::gather_round(std::span<const std::byte> part, std::span<const std::uint64_t> lengths,
                                std::size_t done, std::size_t share, std::vector<std::vector<std::byte>>& all) {
  std::vector<int> counts;
  for (const std::uint64_t length : lengths) counts.push_back(static_cast<int>(part_in_round(length, done, share)));
  std::vector<std::byte> round(static_cast<std::size_t>(std::reduce(counts.begin(), counts.end())));
  mpi::gather(part, counts, round, handle_->communicator, idle_);
  auto from = round.begin();
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].insert(all[r].end(), from, from + counts[r]);
    from += counts[r];
  }
}

}  // namespace hearsay::mpi

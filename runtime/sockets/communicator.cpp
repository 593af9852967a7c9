#include "runtime/sockets/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hearsay::sockets {

Communicator::Communicator(std::shared_ptr<Network> network, Network::Idle idle)
    : messages_(std::move(network)),
      idle_(std::move(idle)),
      members_(static_cast<std::size_t>(messages_.founders())),
      rank_(messages_.rank()) {
  std::iota(members_.begin(), members_.end(), 0);
}

void Communicator::keep(std::vector<int> members, std::uint64_t attempt) {
  rank_ = static_cast<int>(std::ranges::find(members, messages_.rank()) - members.begin());
  std::vector<std::uint64_t> words{attempt};
  for (const int member : members) words.push_back(static_cast<std::uint64_t>(member));
  tag_ = xxh3(std::as_bytes(std::span(words)));
  members_ = std::move(members);
}

void Communicator::send_to(int member, std::span<const std::byte> bytes) {
  messages_.exchange(members_[static_cast<std::size_t>(member)], bytes, Messages::nobody, idle_, tag_);
}

RawBytes Communicator::receive_from(int member) {
  return messages_.exchange(Messages::nobody, {}, members_[static_cast<std::size_t>(member)], idle_, tag_);
}

void Communicator::receive_from(int member, std::span<std::byte> bytes) {
  const RawBytes came = receive_from(member);
  if (came.size() != bytes.size())
    throw CommunicationError("rank " + std::to_string(members_[static_cast<std::size_t>(member)]) + " says " +
                             std::to_string(came.size()) + " bytes where " + std::to_string(bytes.size()) +
                             " are expected");
  if (!came.empty()) std::memcpy(bytes.data(), came.data(), came.size());
}

// In the order of ranks: the same bits for all.
template <class T, class Combine>
void Communicator::reduce(std::span<T> values, Combine combine) {
  if (rank_ != 0) {
    send_to(0, std::as_bytes(values));
    receive_from(0, std::as_writable_bytes(values));
    return;
  }
  std::vector<T> theirs(values.size());
  for (int member = 1; member < size(); ++member) {
    receive_from(member, std::as_writable_bytes(std::span(theirs)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], theirs[i]);
  }
  for (int member = 1; member < size(); ++member) send_to(member, std::as_bytes(values));
}

void Communicator::barrier() { sum(std::span<double>{}); }

bool Communicator::barrier_within(double seconds) {
  struct TooLate {};
  const auto began = std::chrono::steady_clock::now();
  const auto idle = std::exchange(idle_, [&, before = idle_] {
    before();
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds) throw TooLate();
  });
  bool met = true;
  try {
    barrier();
  } catch (const TooLate&) {
    met = false;
  } catch (...) {
    idle_ = idle;
    throw;
  }
  idle_ = idle;
  return met;
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  if (rank_ != root) return receive_from(root, bytes);
  for (int member = 0; member < size(); ++member)
    if (member != root) send_to(member, bytes);
}

void Communicator::sum(std::span<float> values) { reduce(values, std::plus<float>()); }
void Communicator::sum(std::span<double> values) { reduce(values, std::plus<double>()); }
void Communicator::minimum(std::span<double> values) {
  reduce(values, [](double a, double b) { return std::min(a, b); });
}
void Communicator::maximum(std::span<double> values) {
  reduce(values, [](double a, double b) { return std::max(a, b); });
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> bytes) {
  if (rank_ != 0) {
    send_to(0, bytes);
    return {};
  }
  std::vector<std::vector<std::byte>> all{{bytes.begin(), bytes.end()}};
  for (int member = 1; member < size(); ++member) {
    const RawBytes came = receive_from(member);
    all.emplace_back(came.begin(), came.end());
  }
  return all;
}

}  // namespace hearsay::sockets

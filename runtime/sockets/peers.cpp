#include "runtime/sockets/peers.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/ring.hpp"

namespace hearsay::sockets {

Peers::Peers(std::shared_ptr<Network> network, Hooks hooks) : messages_(std::move(network)), hooks_(std::move(hooks)) {}

RawBytes Peers::pass(int to, const Message& out, int from) {
  if (to != nobody && counts_) hooks_.sent(to, out);
  return messages_.exchange(to, out.bytes, from, hooks_.idle);
}

void Peers::exchange(int to, const Message& out, int from, std::vector<std::byte>& in) {
  const RawBytes came = pass(to, out, from);
  if (from != nobody) in.assign(came.begin(), came.end());
}

void Peers::exchange(int to, const Message& out, int from, std::span<std::byte> in) {
  const RawBytes came = pass(to, out, from);
  if (from == nobody) return;
  if (came.size() != in.size())
    throw CommunicationError("rank " + std::to_string(from) + " sends a message of " + std::to_string(came.size()) +
                             " bytes where " + std::to_string(in.size()) + " are expected");
  if (!came.empty()) std::memcpy(in.data(), came.data(), came.size());
}

void Peers::library_sum(std::span<float> values) {
  if (size() == 1) return;
  hooks_.sent((rank() + 1) % size(), {.bytes = std::as_bytes(values), .payload_bytes = values.size_bytes()});
  counts_ = false;
  try {
    ring_all_reduce(Group(*this), values);
  } catch (...) {
    counts_ = true;
    throw;
  }
  counts_ = true;
}

}  // namespace hearsay::sockets

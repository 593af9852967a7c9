#include "runtime/sockets/messages.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hearsay::sockets {

Messages::Messages(std::shared_ptr<Network> network)
    : Channel(std::move(network)), boxes_(static_cast<std::size_t>(ranks())) {
  open();
}

void Messages::arrived(int from, const Frame& frame, RawBytes body, Descriptor /*file*/) {
  if (frame.kind != FrameKind::message) throw ConnectionLost("it sends to memory where there are messages only");
  if (static_cast<std::size_t>(from) >= boxes_.size()) throw ConnectionLost("it was not there when this was opened");
  boxes_[static_cast<std::size_t>(from)].push_back({.tag = frame.number, .bytes = std::move(body)});
}

RawBytes Messages::exchange(int to, std::span<const std::byte> out, int from, const Network::Idle& idle,
                            std::uint64_t tag) {
  auto alone = network().lock();
  const std::uint64_t number = to == nobody ? 0 : network().send(to, frame(FrameKind::message, tag, out.size()), out);
  auto* const box = from == nobody ? nullptr : &boxes_[static_cast<std::size_t>(from)];
  const auto of_this_tag = [&] { return std::ranges::find(*box, tag, &Letter::tag); };
  const auto has_come = [&] { return box == nullptr || of_this_tag() != box->end(); };
  const auto ready = [&] {
    if (!has_come()) network().require(from);
    return (to == nobody || network().has_sent(to, number)) && has_come();
  };
  alone.unlock();
  try {
    network().wait_until(ready, idle);
  } catch (...) {
    network().keep_unsent();
    throw;
  }
  if (box == nullptr) return {};
  alone.lock();
  const auto letter = of_this_tag();
  RawBytes in = std::move(letter->bytes);
  box->erase(letter);
  return in;
}

// Dissemination (Hensgen, Finkel, Manber 1988): after ⌈log2 P⌉ rounds everybody has heard of everybody, if not
// directly.
void Messages::barrier(const Network::Idle& idle) {
  for (int distance = 1; distance < founders(); distance *= 2)
    exchange((rank() + distance) % founders(), {}, (rank() - distance + founders()) % founders(), idle);
}

// A binomial tree: who has it tells the one that is half as far again away.
void Messages::broadcast(std::span<std::byte> bytes, int root, const Network::Idle& idle) {
  const int number = (rank() - root + founders()) % founders();
  int distance = 1;
  while (distance < founders()) distance *= 2;
  bool has = number == 0;
  for (distance /= 2; distance > 0; distance /= 2) {
    const bool in_round = number % distance == 0;
    const int partner = (number ^ distance);
    if (!in_round || partner >= founders()) continue;
    if (has) {
      exchange((partner + root) % founders(), bytes, nobody, idle);
      continue;
    }
    if (partner > number) continue;
    const RawBytes came = exchange(nobody, {}, (partner + root) % founders(), idle);
    if (came.size() != bytes.size())
      throw CommunicationError("rank " + std::to_string(root) + " tells all ranks " + std::to_string(came.size()) +
                               " bytes where this one expects " + std::to_string(bytes.size()));
    if (!came.empty()) std::memcpy(bytes.data(), came.data(), came.size());
    has = true;
  }
}

}  // namespace hearsay::sockets

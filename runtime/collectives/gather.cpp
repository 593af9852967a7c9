#include "runtime/collectives/gather.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

using Lengths = std::array<std::uint64_t, 3>;  // bytes, of which payload, of which index
static_assert(sizeof(Lengths) == gather_header_bytes);

/// The first `count` messages as one.
OwnedMessage pack(const std::vector<OwnedMessage>& messages, std::size_t count) {
  OwnedMessage packed;
  for (std::size_t i = 0; i < count; ++i) {
    const OwnedMessage& m = messages[i];
    const Lengths lengths{m.bytes.size(), m.payload_bytes, m.index_bytes};
    const auto head = std::as_bytes(std::span(lengths));
    packed.bytes.insert(packed.bytes.end(), head.begin(), head.end());
    packed.bytes.insert(packed.bytes.end(), m.bytes.begin(), m.bytes.end());
    packed.payload_bytes += m.payload_bytes;
    packed.index_bytes += m.index_bytes;
  }
  return packed;
}

void unpack_messages(std::span<const std::byte> packed, std::size_t count, int from,
                     std::vector<OwnedMessage>& messages) {
  for (std::size_t i = 0; i < count; ++i) {
    Lengths lengths;
    const bool headed = packed.size() >= sizeof lengths;
    if (headed) std::memcpy(lengths.data(), packed.data(), sizeof lengths);
    const bool whole = headed && lengths[0] <= packed.size() - sizeof lengths;
    if (!whole || lengths[1] > lengths[0] || lengths[2] > lengths[0] - lengths[1])
      throw CommunicationError("all-gather: the message of rank " + std::to_string(from) +
                               " ends, or contradicts itself, after " + std::to_string(i) + " of " +
                               std::to_string(count) + " parts. The ranks run different configurations or versions");
    const auto body = packed.subspan(sizeof lengths, lengths[0]);
    messages.push_back({.bytes = {body.begin(), body.end()},
                        .payload_bytes = static_cast<std::size_t>(lengths[1]),
                        .index_bytes = static_cast<std::size_t>(lengths[2])});
    packed = packed.subspan(sizeof lengths + lengths[0]);
  }
  if (!packed.empty())
    throw CommunicationError("all-gather: the message of rank " + std::to_string(from) + " has " +
                             std::to_string(packed.size()) +
                             " bytes after its last part. The ranks run different configurations or versions");
}

}  // namespace

std::vector<OwnedMessage> all_gather(const Group& group, OwnedMessage own) {
  const int size = group.size();
  std::vector<OwnedMessage> messages;  // of the members index, index + 1, … (mod size)
  messages.push_back(std::move(own));
  for (int distance = 1; distance < size; distance *= 2) {
    const auto count = static_cast<std::size_t>(std::min(distance, size - distance));
    const int to = group.member((group.index() - distance + size) % size);
    const int from = group.member((group.index() + distance) % size);
    const OwnedMessage out = pack(messages, count);
    std::vector<std::byte> in;
    group.peers().exchange(to, out.view(), from, in);
    unpack_messages(in, count, from, messages);
  }
  std::ranges::rotate(messages, messages.end() - group.index());
  return messages;
}

}  // namespace hearsay

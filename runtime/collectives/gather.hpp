#pragma once
// All-gather of messages whose lengths differ from member to member.
#include <cstddef>
#include <vector>

#include "runtime/transport/peers.hpp"

namespace hearsay {

/// A message that owns its bytes.
struct OwnedMessage {
  std::vector<std::byte> bytes{};
  std::size_t payload_bytes = 0, index_bytes = 0;

  Message view() const { return {.bytes = bytes, .payload_bytes = payload_bytes, .index_bytes = index_bytes}; }
};

/// In front of every message in an all-gather: its lengths.
inline constexpr std::size_t gather_header_bytes = 24;

/// Every member's message on every member, in the order of the group. Bruck's algorithm (Bruck et al., Efficient
/// algorithms for all-to-all communications, IEEE TPDS 1997, bruck1997efficient), for any number of members: in step t
/// a member hands everything it has to the one 2^t ranks before it.
/// Cost: ⌈log2 P⌉ messages, P − 1 members' bytes, `gather_header_bytes` for each; all lengths travel with the contents.
std::vector<OwnedMessage> all_gather(const Group& group, OwnedMessage own);

}  // namespace hearsay

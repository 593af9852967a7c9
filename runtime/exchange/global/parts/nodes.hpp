#pragma once
// Ranks as nodes of equally many: who works together inside a node, and who across nodes.
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/collectives/gather.hpp"

namespace hearsay {

/// The two groups that one of M · n ranks belongs to.
struct NodeGroups {
  std::vector<int> local;   ///< the ranks of its node, ascending
  std::vector<int> across;  ///< the ranks with its local index, one a node
  int local_index = 0;      ///< in `local`
};

/// Nodes are the machines, or with `node_size` > 0 that many consecutive ranks each. Throws ConfigError, naming the
/// sizes, unless all nodes have the same number of ranks.
NodeGroups node_groups(const Peers& peers, int node_size);
/// Throws ConfigError unless `node_size` divides `ranks`.
void require_equal_nodes(int node_size, int ranks);

/// Several messages as one: for each 8 bytes with its length, then its bytes.
constexpr std::size_t packed_header_bytes = 8;
OwnedMessage pack(std::span<const OwnedMessage> messages);
/// Inverse of pack, without the account of payload and positions. Throws CommunicationError naming rank `from` for
/// bytes that are not a pack of `count` messages.
std::vector<OwnedMessage> unpack(std::span<const std::byte> packed, std::size_t count, int from);

}  // namespace hearsay

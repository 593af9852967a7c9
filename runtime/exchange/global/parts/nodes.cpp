#include "runtime/exchange/global/parts/nodes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

std::vector<int> node_of_ranks(const Peers& peers, int node_size) {
  if (node_size == 0) return peers.nodes();
  require_equal_nodes(node_size, peers.size());
  std::vector<int> nodes(static_cast<std::size_t>(peers.size()));
  for (std::size_t r = 0; r < nodes.size(); ++r) nodes[r] = static_cast<int>(r) / node_size;
  return nodes;
}

std::vector<std::vector<int>> ranks_of_nodes(const std::vector<int>& nodes) {
  std::vector<std::vector<int>> ranks(static_cast<std::size_t>(*std::ranges::max_element(nodes)) + 1);
  for (std::size_t r = 0; r < nodes.size(); ++r)
    ranks[static_cast<std::size_t>(nodes[r])].push_back(static_cast<int>(r));
  return ranks;
}

void require_equal(const std::vector<std::vector<int>>& nodes) {
  std::string sizes;
  for (const auto& node : nodes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(node.size());
  const auto differs = [&](const auto& node) { return node.size() != nodes.front().size(); };
  if (std::ranges::any_of(nodes, differs))
    throw ConfigError("exchange: hitopk needs equally many ranks on every machine, and there are " + sizes +
                      "; start equal numbers, or set exchange.node_size to group ranks by number");
}

}  // namespace

void require_equal_nodes(int node_size, int ranks) {
  if (ranks % node_size != 0)
    throw ConfigError("exchange.node_size: nodes of " + std::to_string(node_size) + " ranks cannot be made of " +
                      std::to_string(ranks) + " ranks; choose a divisor of it, or 0 for the machines");
}

NodeGroups node_groups(const Peers& peers, int node_size) {
  const std::vector<int> node_of = node_of_ranks(peers, node_size);
  const auto nodes = ranks_of_nodes(node_of);
  require_equal(nodes);
  NodeGroups groups;
  groups.local = nodes[static_cast<std::size_t>(node_of[static_cast<std::size_t>(peers.rank())])];
  const auto index = std::ranges::find(groups.local, peers.rank()) - groups.local.begin();
  groups.local_index = static_cast<int>(index);
  for (const auto& node : nodes) groups.across.push_back(node[static_cast<std::size_t>(index)]);
  return groups;
}

OwnedMessage pack(std::span<const OwnedMessage> messages) {
  OwnedMessage packed;
  for (const OwnedMessage& message : messages) {
    const std::array<std::uint64_t, 1> length{message.bytes.size()};
    static_assert(sizeof length == packed_header_bytes);
    const auto head = std::as_bytes(std::span(length));
    packed.bytes.insert(packed.bytes.end(), head.begin(), head.end());
    packed.bytes.insert(packed.bytes.end(), message.bytes.begin(), message.bytes.end());
    packed.payload_bytes += message.payload_bytes;
    packed.index_bytes += message.index_bytes;
  }
  return packed;
}

std::vector<OwnedMessage> unpack(std::span<const std::byte> packed, std::size_t count, int from) {
  const auto refuse = [&](const std::string& what) {
    throw CommunicationError("the messages that rank " + std::to_string(from) + " passes on " + what +
                             ". The ranks run different configurations or versions");
  };
  std::vector<OwnedMessage> messages;
  while (messages.size() < count) {
    std::uint64_t length = 0;
    const bool headed = packed.size() >= sizeof length;
    if (headed) std::memcpy(&length, packed.data(), sizeof length);
    if (!headed || length > packed.size() - sizeof length)
      refuse("end in message " + std::to_string(messages.size()) + " of " + std::to_string(count));
    const auto body = packed.subspan(sizeof length, length);
    messages.push_back({.bytes = {body.begin(), body.end()}});
    packed = packed.subspan(sizeof length + length);
  }
  if (!packed.empty()) refuse("go on for " + std::to_string(packed.size()) + " bytes");
  return messages;
}

}  // namespace hearsay

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "runtime/transport/peers.hpp"

namespace hearsay {
namespace {

std::vector<int> everybody(const Peers& peers) {
  std::vector<int> members(static_cast<std::size_t>(peers.size()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

}  // namespace

Group::Group(Peers& peers) : Group(peers, everybody(peers)) {}

Group::Group(Peers& peers, std::vector<int> members) : peers_(&peers), members_(std::move(members)) {
  const auto me = std::ranges::find(members_, peers.rank());
  if (me == members_.end()) throw std::logic_error("a group without the rank that makes it");
  index_ = static_cast<int>(me - members_.begin());
}

}  // namespace hearsay

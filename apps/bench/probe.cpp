#include "apps/bench/probe.hpp"

#include <algorithm>
#include <array>

#include "apps/bench/ping_pong.hpp"
#include "apps/bench/sparse_passes.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"

namespace hearsay {
namespace {

constexpr int ping_pongs = 200;  // of a size, at most
constexpr int passes = 20;
constexpr std::uint64_t seed = 1;

/// On all ranks at once, as in training: they share memory, and often cores. The slowest rank's.
void measure_passes(Network& network, mpi::Communicator& world) {
  const SelectionTiming selection = measure_selection(seed, passes);
  const auto n = static_cast<double>(selection.values);
  constexpr double bytes_of_addition = 12.0;  // two values read, one written
  network.memory_s = selection.addition_s / (bytes_of_addition * n);
  network.selection_s = selection.selection_s / n;
  const MergeTiming merge = measure_merge(seed, passes);
  std::array<double, 3> slowest{network.memory_s, network.selection_s,
                                merge.median_s / (2.0 * static_cast<double>(merge.entries))};
  world.maximum(slowest);
  network.memory_s = slowest[0], network.selection_s = slowest[1], network.merge_s = slowest[2];
}

/// α and β without the 64 kB message, the second: buffers on the way let that much pass faster than the link is.
AlphaBeta link_model(Peers& peers, int other) {
  std::vector<PingPong> times = ping_pong(peers, other, true, ping_pongs);
  if (times.size() > 2) times.erase(times.begin() + 1);
  return fitted(times);
}

}  // namespace

AlphaBeta slowest_link(const std::vector<Link>& links, bool same_host, const AlphaBeta& fallback) {
  AlphaBeta slowest;
  bool found = false;
  for (const Link& link : links) {
    if (link.same_host != same_host) continue;
    found = true;
    slowest.alpha_s = std::max(slowest.alpha_s, link.model.alpha_s);
    slowest.beta_s = std::max(slowest.beta_s, link.model.beta_s);
  }
  return found ? slowest : fallback;
}

Network measure_network(const std::function<void(const std::string& what)>& begun) {
  mpi::Communicator world;
  mpi::Peers peers({});
  const std::vector<int> nodes = peers.nodes();
  Network network{.ranks = peers.size(), .hosts = 1 + std::ranges::max(nodes)};
  for (int other = 1; other < peers.size(); ++other) {
    if (peers.rank() == 0) begun("messages between rank 0 and rank " + std::to_string(other));
    if (peers.rank() == 0) {
      const bool same_host = nodes[static_cast<std::size_t>(other)] == nodes[0];
      network.links.push_back({.rank = other, .same_host = same_host, .model = link_model(peers, other)});
    } else if (peers.rank() == other) {
      ping_pong(peers, 0, false, ping_pongs);
    }
    world.barrier();
  }
  if (peers.rank() == 0) begun("sums, selections and merges on all ranks at once");
  measure_passes(network, world);
  if (peers.rank() == 0) {
    // One kind of link may be missing; a single host has no network, a host with one rank no inside.
    network.between = slowest_link(network.links, false, slowest_link(network.links, true, {}));
    network.inside = slowest_link(network.links, true, network.between);
  }
  return network;
}

}  // namespace hearsay

#include "apps/bench/probe/probe.hpp"

#include <algorithm>
#include <array>

#include "apps/bench/between_ranks/ping_pong.hpp"
#include "apps/bench/probe/sparse_passes.hpp"
#include "base/timing.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"

namespace hearsay {
namespace {

constexpr int ping_pongs = 200;                    // of a size, at most
constexpr int passes = 20, merges = 400;           // some tenths of a second each: longer than a share of a core
constexpr double loaded_s = 0.3, longest_s = 0.5;  // a length of messages under load, and one message
constexpr std::uint64_t seed = 1;

/// On all ranks at once, as in training: they share memory, and often cores, which means show and medians of short
/// passes do not. The slowest rank's.
void measure_passes(Network& network, mpi::Communicator& world) {
  constexpr double few = 0.001, many = 0.1;
  const SelectionTiming of_few = measure_selection(seed, passes, few), of_many = measure_selection(seed, passes, many);
  // 100 MB, so that what is read again and again does not stay in a cache.
  const SelectionTiming of_reads = measure_selection(seed, passes / 2, few, "mstopk", 25'000'000);
  const MergeTiming merge = measure_merge(seed, merges);
  const auto n = static_cast<double>(of_few.values);
  const double kept_s = (of_many.mean_selection_s - of_few.mean_selection_s) / ((many - few) * n);
  constexpr double bytes_of_addition = 12.0, bytes_of_read = 4.0;  // a value: two read and one written, one read
  const double reads_s = of_reads.mean_selection_s - of_reads.mean_addition_s;
  std::array<double, 5> slowest{
      of_few.mean_addition_s / (bytes_of_addition * n),
      std::max(0.0, reads_s) / (bytes_of_read * of_reads.reads * static_cast<double>(of_reads.values)),
      of_few.mean_selection_s / n, std::max(0.0, kept_s), merge.mean_s / (2.0 * static_cast<double>(merge.entries))};
  world.maximum(slowest);
  network.memory_s = slowest[0], network.read_s = slowest[1], network.selection_s = slowest[2];
  network.kept_s = slowest[3], network.merge_s = slowest[4];
}

/// A message of so many bytes to rank `to` while one arrives from rank `from`, over what it should take alone; the
/// largest on any rank, at least 1.
double load(Peers& peers, mpi::Communicator& world, int to, int from, const AlphaBeta& link, std::size_t bytes) {
  const double alone_s = link.alpha_s + static_cast<double>(bytes) / 4.0 * link.beta_s;
  const std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  const auto exchange = [&] { peers.exchange(to, {.bytes = out, .payload_bytes = bytes}, from, in); };
  exchange();  // the first one connects
  // All ranks exchange equally often, though they know links of different speeds.
  std::array<double, 1> most{static_cast<double>(std::clamp(static_cast<int>(loaded_s / alone_s), 3, 50))};
  world.maximum(most);
  const auto repeats = static_cast<int>(most[0]);
  const double seconds = seconds_taken([&] {
    for (int i = 0; i < repeats; ++i) exchange();
  });
  most = {seconds / repeats / alone_s};
  world.maximum(most);
  return std::max(1.0, most[0]);
}

/// In the two patterns of the algorithms: neighbours to each other, every rank to the next.
void measure_load(Network& network, Peers& peers, mpi::Communicator& world) {
  std::array<double, 4> models{network.inside.alpha_s, network.inside.beta_s, network.between.alpha_s,
                               network.between.beta_s};
  world.maximum(models);  // only rank 0 has measured
  const std::vector<int> nodes = peers.nodes();
  const int rank = peers.rank(), ranks = peers.size();
  const auto link_to = [&](int other) -> AlphaBeta {
    const bool inside = nodes[static_cast<std::size_t>(other)] == nodes[static_cast<std::size_t>(rank)];
    return {.alpha_s = models[inside ? 0 : 2], .beta_s = models[inside ? 1 : 3]};
  };
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, partner = rank ^ 1;
  for (const std::size_t bytes : loaded_bytes) {
    const double alone_s = static_cast<double>(bytes) / 4.0 * std::max(models[1], models[3]);
    if (!network.loads.empty() && alone_s > longest_s) break;
    const double crossing = partner < ranks ? load(peers, world, partner, partner, link_to(partner), bytes)
                                            : load(peers, world, Peers::nobody, Peers::nobody, link_to(next), bytes);
    network.loads.push_back({.bytes = static_cast<double>(bytes),
                             .crossing = crossing,
                             .shifting = load(peers, world, next, previous, link_to(next), bytes)});
  }
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
  mpi::Peers peers;
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
  if (peers.rank() == 0) {
    // One kind of link may be missing; a single host has no network, a host with one rank no inside.
    network.between = slowest_link(network.links, false, slowest_link(network.links, true, {}));
    network.inside = slowest_link(network.links, true, network.between);
    begun("messages of all ranks at once");
  }
  measure_load(network, peers, world);
  if (peers.rank() == 0) begun("sums, selections and merges on all ranks at once");
  measure_passes(network, world);
  return network;
}

}  // namespace hearsay

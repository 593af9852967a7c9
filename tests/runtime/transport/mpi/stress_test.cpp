// The mailbox over a real window: floods at every rank count that CTest starts this with, and over every component
// choice that it is started with. HEARSAY_STRESS_PACKETS (per edge) makes it as long as one likes.
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/transport/ledger.hpp"
#include "tests/runtime/transport/stress.hpp"

namespace hearsay::stress_test {
namespace {

using test::StressPlan;
using test::StressRank;
using test::StressResult;

std::int64_t packets_per_edge(std::int64_t usual) {
  const char* asked = std::getenv("HEARSAY_STRESS_PACKETS");
  return asked == nullptr ? usual : std::stoll(asked);
}

Topology complete_graph(int ranks) {
  Config config = Config::from_text("graph: {name: complete}\nweights: {name: metropolis}");
  return TopologyPlan(config).build(ranks);
}

struct Flood {
  StressResult result;
  LedgerTotals totals;
};

/// `hold_back_s`: rank 0 does not call anything for so long before it starts, as a rank that computes.
Flood flood(const StressPlan& plan, double hold_back_s = 0.0, Haste haste = Haste::somebody_waits) {
  mpi::Communicator world;
  const Topology topology = complete_graph(world.size());
  const Neighbourhood neighbourhood = topology.neighbourhood(world.rank());
  Ledger ledger(neighbourhood.neighbours.size(), 0);
  const std::size_t capacity = MailboxMap::capacity_for(plan.largest_packet());
  const MailboxMap map{.degree = world.size() - 1, .capacity_bytes = capacity};
  mpi::Window window(map.total_bytes(), mpi::all_ranks(), {.haste = haste});
  Mailbox mailbox(window, topology, world.rank(), capacity, ledger);
  mpi::Communicator end([&] { mailbox.progress(); });
  Flood flood;
  {
    const auto engine = mpi::make_engine([&] { return mailbox.progress(); }, window);
    if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(hold_back_s));
    flood.result = StressRank(plan, neighbourhood, mailbox, *engine).run();
    engine->wait_until([&] { return !mailbox.sending(); });
    engine->run([&] { end.barrier(); });
  }
  world.barrier();
  test::check_stress(flood.result, plan, neighbourhood.neighbours.size());
  flood.totals = ledger.totals();
  return flood;
}

TEST_CASE("small packets, fast consumers") {
  flood({.packets_per_edge = packets_per_edge(4000), .largest_body_words = 16, .seed = 11});
}

TEST_CASE("large packets that wrap around often") {
  flood({.packets_per_edge = packets_per_edge(4000) / 10 + 1, .largest_body_words = 8192, .seed = 12});
}

TEST_CASE("packets of all sizes that nobody waits for") {
  flood({.packets_per_edge = packets_per_edge(4000) / 10 + 1, .largest_body_words = 8192, .seed = 16}, 0.0,
        Haste::nobody_waits);
  flood({.packets_per_edge = packets_per_edge(4000) / 4, .largest_body_words = 16, .consumer_naps = 0.1, .seed = 17},
        0.0, Haste::nobody_waits);
}

TEST_CASE("slow consumers fill the rings, and nothing is lost") {
  const StressPlan plan{
      .packets_per_edge = packets_per_edge(4000) / 10 + 1, .largest_body_words = 64, .consumer_naps = 0.5, .seed = 13};
  const Flood slow = flood(plan);
  mpi::Communicator world;
  double refused[1] = {static_cast<double>(slow.result.refused)};
  world.sum(std::span<double>(refused));
  if (world.size() > 1) CHECK(refused[0] > 0.0);
}

TEST_CASE("a target that computes for a second without calling MPI") {
  flood({.packets_per_edge = 20, .largest_body_words = 1000, .seed = 14}, 1.0);
}

TEST_CASE("the ledger counts every packet") {
  const StressPlan plan{.packets_per_edge = 50, .largest_body_words = 0, .seed = 15};
  const Flood counted = flood(plan);
  mpi::Communicator world;
  const auto packets = static_cast<std::uint64_t>(plan.packets_per_edge * (world.size() - 1));
  CHECK(counted.totals.packets == packets);
  CHECK(counted.totals.header_bytes >= packets * sizeof(PacketHeader));
  CHECK(counted.totals.control_bytes % sizeof(std::uint64_t) == 0);
}

}  // namespace
}  // namespace hearsay::stress_test

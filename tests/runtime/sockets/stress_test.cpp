// The mailbox over sockets: floods of processes on one host, on several, and on both. HEARSAY_STRESS_PACKETS (per edge)
// makes it as long as one likes.
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "runtime/sockets/transport.hpp"
#include "runtime/transport/ledger.hpp"
#include "tests/runtime/sockets/processes.hpp"
#include "tests/runtime/transport/local_mailboxes.hpp"
#include "tests/runtime/transport/stress.hpp"

namespace hearsay::stress_test {
namespace {

using namespace test;

std::int64_t packets_per_edge(std::int64_t usual) {
  const char* asked = std::getenv("HEARSAY_STRESS_PACKETS");
  return asked == nullptr ? usual : std::stoll(asked);
}

/// What a rank says: received, torn, out of order, refused, packets, header bytes, control bytes.
std::string flood(const StressPlan& plan, Haste haste, const std::shared_ptr<sockets::Network>& network) {
  sockets::Transport transport(network);
  const Topology topology = complete_graph(transport.ranks());
  const Neighbourhood neighbourhood = topology.neighbourhood(transport.rank());
  Ledger ledger(neighbourhood.neighbours.size(), 0);
  const std::size_t capacity = MailboxMap::capacity_for(plan.largest_packet());
  const MailboxMap map{.degree = transport.ranks() - 1, .capacity_bytes = capacity};
  Mailbox* box = nullptr;
  transport.open_peers({.idle = [&] { box->progress(); }});
  RemoteMemory& memory = transport.open_memory(map.total_bytes(), {.haste = haste});
  Mailbox mailbox(memory, topology, transport.rank(), capacity, ledger);
  box = &mailbox;
  StressResult result;
  {
    const auto engine = transport.make_engine([&] { return mailbox.progress(); });
    result = StressRank(plan, neighbourhood, mailbox, *engine).run();
    engine->wait_until([&] { return !mailbox.sending(); });
    engine->run([&] { transport.barrier(); });
  }
  const LedgerTotals totals = ledger.totals();
  const std::vector<std::int64_t> said{result.received,
                                       result.torn,
                                       result.out_of_order,
                                       result.refused,
                                       static_cast<std::int64_t>(totals.packets),
                                       static_cast<std::int64_t>(totals.header_bytes),
                                       static_cast<std::int64_t>(totals.control_bytes)};
  return as_text<std::int64_t>(said);
}

void check_flood(const MeetingPlan& job, const StressPlan& plan, Haste haste = Haste::somebody_waits) {
  const auto all = all_done(run_processes(
      job, [&](const std::shared_ptr<sockets::Network>& network) { return flood(plan, haste, network); }));
  std::int64_t refused = 0;
  for (const std::string& text : all) {
    const auto said = from_text<std::int64_t>(text);
    REQUIRE(said.size() == 7);
    const std::int64_t edges = job.ranks - 1, packets = edges * plan.packets_per_edge;
    CHECK(said[0] == packets);
    CHECK(said[1] == 0);
    CHECK(said[2] == 0);
    CHECK(said[4] == packets);
    CHECK(said[5] >= packets * static_cast<std::int64_t>(sizeof(PacketHeader)));
    CHECK(said[6] % static_cast<std::int64_t>(sizeof(std::uint64_t)) == 0);
    refused += said[3];
  }
  if (plan.consumer_naps >= 0.5) CHECK(refused > 0);
}

std::vector<MeetingPlan> jobs() { return {on_one_host(2), on_one_host(4), on_two_hosts(2), on_two_hosts(4)}; }

TEST_CASE("small packets, fast consumers") {
  for (const MeetingPlan& job : jobs())
    check_flood(job, {.packets_per_edge = packets_per_edge(4000), .largest_body_words = 16, .seed = 11});
}

TEST_CASE("large packets that wrap around often") {
  for (const MeetingPlan& job : jobs())
    check_flood(job, {.packets_per_edge = packets_per_edge(4000) / 10 + 1, .largest_body_words = 8192, .seed = 12});
}

TEST_CASE("packets of all sizes that nobody waits for") {
  for (const MeetingPlan& job : jobs())
    check_flood(
        job,
        {.packets_per_edge = packets_per_edge(4000) / 4, .largest_body_words = 16, .consumer_naps = 0.1, .seed = 17},
        Haste::nobody_waits);
}

TEST_CASE("slow consumers fill the rings, and nothing is lost") {
  for (const MeetingPlan& job : jobs())
    check_flood(job, {.packets_per_edge = packets_per_edge(4000) / 10 + 1,
                      .largest_body_words = 64,
                      .consumer_naps = 0.5,
                      .seed = 13});
}

}  // namespace
}  // namespace hearsay::stress_test

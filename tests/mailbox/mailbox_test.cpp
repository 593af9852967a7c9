// The mailbox between threads of one process: its law under load, its limits, and what it does with damaged bytes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "runtime/base/error.hpp"
#include "runtime/ledger/ledger.hpp"
#include "tests/mailbox/stress.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay {
namespace {

using test::LocalBlocks;
using test::LocalMemory;
using test::StressPlan;
using test::StressRank;
using test::StressResult;

Topology complete_graph(int ranks) {
  Config config = Config::from_text("graph: {name: complete}\nweights: {name: metropolis}");
  return TopologyPlan(config).build(ranks);
}

/// P mailboxes on local memory, driven by hand.
struct LocalMailboxes {
  LocalMailboxes(int ranks, std::size_t capacity)
      : topology(complete_graph(ranks)),
        blocks(std::vector<std::size_t>(static_cast<std::size_t>(ranks),
                                        MailboxMap{.degree = ranks - 1, .capacity_bytes = capacity}.total_bytes())) {
    for (int r = 0; r < ranks; ++r) {
      ledgers.push_back(std::make_unique<Ledger>(static_cast<std::size_t>(ranks - 1), 0));
      memories.push_back(std::make_unique<LocalMemory>(blocks, r));
      boxes.push_back(std::make_unique<Mailbox>(*memories.back(), topology, r, capacity, *ledgers.back()));
    }
  }
  Mailbox& operator[](int rank) { return *boxes[static_cast<std::size_t>(rank)]; }

  Topology topology;
  LocalBlocks blocks;
  std::vector<std::unique_ptr<Ledger>> ledgers;
  std::vector<std::unique_ptr<LocalMemory>> memories;
  std::vector<std::unique_ptr<Mailbox>> boxes;
};

SharedPacket packet_of(std::size_t bytes, int sender, Iteration k) {
  auto packet = std::make_shared<OutgoingPacket>();
  packet->bytes.resize(bytes);
  seal_packet(packet->bytes, sender, k, 0);
  return packet;
}

void flood_with_threads(int ranks, const StressPlan& plan) {
  LocalMailboxes mailboxes(ranks, MailboxMap::capacity_for(plan.largest_packet()));
  std::vector<StressResult> results(static_cast<std::size_t>(ranks));
  std::atomic<int> running{ranks};
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadEngine engine([&, r] { return mailboxes[r].progress(); });
      results[static_cast<std::size_t>(r)] =
          StressRank(plan, mailboxes.topology.neighbourhood(r), mailboxes[r], engine).run();
      --running;
      while (running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const StressResult& result : results) test::check_stress(result, plan, static_cast<std::size_t>(ranks - 1));
}

TEST_CASE("exactly once, whole and in order between threads") {
  for (const int ranks : {2, 3, 5}) {
    CAPTURE(ranks);
    flood_with_threads(ranks, {.packets_per_edge = 3000, .largest_body_words = 64, .seed = 1});
    flood_with_threads(ranks, {.packets_per_edge = 200, .largest_body_words = 64, .consumer_naps = 0.3, .seed = 2});
  }
}

TEST_CASE("a full ring refuses, and takes again once a packet is consumed") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  for (int k = 0; k < 3; ++k) {
    REQUIRE(mailboxes[0].fits(0, 64));
    mailboxes[0].post(0, packet_of(64, 0, k));
  }
  CHECK_FALSE(mailboxes[0].fits(0, 64));
  CHECK_THROWS_AS(mailboxes[0].post(0, packet_of(64, 0, 3)), std::logic_error);
  mailboxes[0].progress();
  mailboxes[1].progress();
  mailboxes[1].pop(0);
  CHECK_FALSE(mailboxes[0].fits(0, 64));  // the place is free, but the sender has not heard of it
  mailboxes[1].progress();
  mailboxes[0].progress();
  CHECK(mailboxes[0].fits(0, 64));
}

TEST_CASE("two worst-case packets always fit an emptied ring's successor, wherever the first one starts") {
  const auto two_fit = [](std::size_t largest, std::vector<std::size_t> history) {
    LocalMailboxes mailboxes(2, MailboxMap::capacity_for(largest));
    for (const std::size_t bytes : history) {
      mailboxes[0].post(0, packet_of(bytes, 0, 0));
      mailboxes[0].progress();
      mailboxes[1].progress();
      mailboxes[1].pop(0);
      mailboxes[1].progress();
      mailboxes[0].progress();
    }
    mailboxes[0].post(0, packet_of(largest, 0, 1));
    return mailboxes[0].fits(0, largest);
  };
  CHECK(rc::check("any history of smaller packets", [&] {
    const auto largest = *rc::gen::inRange<std::size_t>(32, 1000);
    const auto history = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(32, largest + 1));
    RC_ASSERT(two_fit(largest, history));
  }));
}

TEST_CASE("a mailbox without rings, as algorithms without one have it, has no edges and nothing to do") {
  LocalMailboxes mailboxes(2, 0);
  CHECK_FALSE(mailboxes[0].progress());
}

TEST_CASE("damaged bytes are an error that names the edge") {
  const std::size_t capacity = MailboxMap::capacity_for(256);
  const MailboxMap map{.degree = 1, .capacity_bytes = capacity};
  for (const std::size_t damaged : {std::size_t{0}, std::size_t{8}, std::size_t{12}, std::size_t{200}}) {
    CAPTURE(damaged);
    LocalMailboxes mailboxes(2, capacity);
    mailboxes[0].post(0, packet_of(256, 0, 7));
    mailboxes[0].progress();
    mailboxes.blocks[1][map.ring(0) + damaged] ^= std::byte{4};
    try {
      mailboxes[1].progress();
      FAIL("the damage went unnoticed");
    } catch (const CommunicationError& error) {
      CHECK(std::string(error.what()).find("from rank 0 to rank 1") != std::string::npos);
    }
  }
}

/// A memory whose puts are there at once, but which says so only when it is told to.
class SlowMemory final : public RemoteMemory {
 public:
  SlowMemory(LocalBlocks& blocks, int rank) : memory_(blocks, rank) {}
  std::span<std::byte> own() override { return memory_.own(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    memory_.put(bytes, target, offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    memory_.store(word, target, offset);
  }
  bool flush(int) override { return arrived || --looks_before_arrival < 0; }
  void sync() override {}
  bool arrived = false;
  int looks_before_arrival = 1 << 30;

 private:
  LocalMemory memory_;
};

TEST_CASE("where a flush does not wait, a large packet is seen no sooner than it has arrived, and sent once") {
  constexpr std::size_t large = Mailbox::early_bytes + 8;
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(large));
  SlowMemory memory(mailboxes.blocks, 0);
  Ledger ledger(1, 0);
  Mailbox sender(memory, mailboxes.topology, 0, MailboxMap::capacity_for(large), ledger);
  sender.post(0, packet_of(large, 0, 0));
  for (int look = 0; look < 3; ++look) sender.progress();
  mailboxes[1].progress();
  CHECK_FALSE(mailboxes[1].front(0));
  CHECK(sender.sending());
  memory.arrived = true;
  CHECK(sender.progress());
  CHECK_FALSE(sender.sending());
  CHECK_FALSE(sender.progress());
  mailboxes[1].progress();
  CHECK(mailboxes[1].front(0));
  CHECK(ledger.totals().puts == 2);  // packet and head
}

TEST_CASE("a small packet is taken as soon as it is whole, in whatever order its words come, and once") {
  const std::size_t capacity = MailboxMap::capacity_for(200);
  const MailboxMap map{.degree = 1, .capacity_bytes = capacity};
  CHECK(rc::check("any size, any order", [&] {
    LocalMailboxes mailboxes(2, capacity);
    const auto words = *rc::gen::inRange<std::size_t>(5, 26);
    auto packet = std::make_shared<OutgoingPacket>();
    for (std::size_t i = 0; i < 8 * words; ++i) packet->bytes.push_back(static_cast<std::byte>(i + 1));
    seal_packet(packet->bytes, 0, 3, 1);  // no word of it is 0, as the memory is
    std::vector<std::size_t> order(words);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(*rc::gen::arbitrary<std::uint64_t>()));
    const auto place = mailboxes.blocks[1].subspan(map.ring(0));
    for (const std::size_t word : order) {
      mailboxes[1].progress();
      RC_ASSERT(!mailboxes[1].front(0));
      std::memcpy(&place[8 * word], &packet->bytes[8 * word], 8);
    }
    mailboxes[1].progress();
    RC_ASSERT(mailboxes[1].front(0));
    RC_ASSERT(std::ranges::equal(*mailboxes[1].front(0), packet->bytes));
    mailboxes[0].post(0, packet);  // now with its head
    mailboxes[0].progress();
    mailboxes[1].pop(0);
    mailboxes[1].progress();
    RC_ASSERT(!mailboxes[1].front(0));
  }));
}

TEST_CASE("what an earlier round of the ring left behind is not a packet") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  for (int k = 0; k < 20; ++k) {
    mailboxes[0].post(0, packet_of(64, 0, k / 2));  // two of an iteration: the second one waits for its head
    mailboxes[0].progress();
    mailboxes[1].progress();
    REQUIRE(mailboxes[1].front(0));
    CHECK(packet_header(*mailboxes[1].front(0)).iteration == k / 2);
    mailboxes[1].pop(0);
    mailboxes[1].progress();
    CHECK_FALSE(mailboxes[1].front(0));
    mailboxes[0].progress();
  }
  CHECK_THROWS_AS(mailboxes[0].post(0, packet_of(64, 0, 8)), std::logic_error);  // an earlier iteration
}

TEST_CASE("where a flush does not wait, packets and places that come meanwhile are not forgotten") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  SlowMemory memory(mailboxes.blocks, 0);
  Ledger ledger(1, 0);
  Mailbox slow(memory, mailboxes.topology, 0, MailboxMap::capacity_for(64), ledger);
  // A second packet is posted while the first one travels, and a second place is freed while the first tail does.
  for (int k = 0; k < 2; ++k) {
    mailboxes[1].post(0, packet_of(64, 1, k));
    slow.post(0, packet_of(64, 0, k));
    mailboxes[1].progress();
    slow.progress();
    slow.pop(0);
    slow.progress();
  }
  memory.arrived = true;
  while (slow.progress()) {
  }
  mailboxes[1].progress();
  CHECK_FALSE(slow.sending());
  for (int k = 0; k < 2; ++k) mailboxes[1].pop(0);
  CHECK(ledger.edge(0).control_bytes.value() == 4 * 8);  // two heads, two tails
}

// Whoever then waits for the memory would wait for ever: it has nothing to tell any more.
TEST_CASE("a tail that arrives between two looks of one step makes room for the next one at once") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  SlowMemory memory(mailboxes.blocks, 0);
  Ledger ledger(1, 0);
  Mailbox slow(memory, mailboxes.topology, 0, MailboxMap::capacity_for(64), ledger);
  for (int k = 0; k < 2; ++k) mailboxes[1].post(0, packet_of(64, 1, k));
  mailboxes[1].progress();
  slow.progress();
  slow.pop(0);
  slow.progress();  // the first tail is on its way
  slow.pop(0);
  memory.looks_before_arrival = 1;
  CHECK(slow.progress());
  CHECK(slow.progress());
  CHECK(ledger.edge(0).control_bytes.value() == 2 * 8);
}

/// Where what others have put appears at a sync only, as in a simulation.
class SyncedMemory final : public RemoteMemory {
 public:
  SyncedMemory(LocalBlocks& blocks, int rank, std::function<void()> bring)
      : memory_(blocks, rank), bring_(std::move(bring)) {}
  std::span<std::byte> own() override { return memory_.own(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    memory_.put(bytes, target, offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    memory_.store(word, target, offset);
  }
  bool flush(int) override { return true; }
  void sync() override { bring_(); }

 private:
  LocalMemory memory_;
  std::function<void()> bring_;
};

TEST_CASE("the room that a sync brings is there after the same step") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  SyncedMemory memory(mailboxes.blocks, 0, [&] { mailboxes[1].progress(); });
  Ledger ledger(1, 0);
  Mailbox sender(memory, mailboxes.topology, 0, MailboxMap::capacity_for(64), ledger);
  for (int k = 0; sender.fits(0, 64); ++k) sender.post(0, packet_of(64, 0, k));
  sender.progress();
  mailboxes[1].pop(0);
  CHECK_FALSE(sender.fits(0, 64));
  sender.progress();
  CHECK(sender.fits(0, 64));
}

TEST_CASE("the ledger equals what went over: packets, markers, heads and tails") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(128));
  for (int k = 0; k < 10; ++k) {
    mailboxes[0].post(0, packet_of(100, 0, k));
    mailboxes[0].progress();
    mailboxes[1].progress();
    mailboxes[1].pop(0);
    mailboxes[1].progress();
    mailboxes[0].progress();
  }
  const LedgerTotals sender = mailboxes.ledgers[0]->totals();
  const LedgerTotals receiver = mailboxes.ledgers[1]->totals();
  CHECK(sender.packets == 10);
  CHECK(sender.header_bytes == 1000);       // no values in these packets; 128-byte places need no marker
  CHECK(sender.control_bytes == 10 * 8);    // heads
  CHECK(receiver.control_bytes == 10 * 8);  // tails
  CHECK(sender.puts == 20);
  CHECK(receiver.packets == 0);
}

}  // namespace
}  // namespace hearsay

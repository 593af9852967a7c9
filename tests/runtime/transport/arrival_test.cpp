// When a packet, and the room that one leaves, is seen: flushes that do not wait, packets taken before their head says
// so, what a sync brings.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/runtime/transport/local_mailboxes.hpp"

namespace hearsay::arrival_test {
namespace {

using test::LocalBlocks;
using test::LocalMailboxes;
using test::LocalMemory;
using test::packet_of;

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
    const auto ring = mailboxes.blocks[1].subspan(map.ring(0));
    for (const std::size_t word : order) {
      mailboxes[1].progress();
      RC_ASSERT(!mailboxes[1].front(0));
      std::memcpy(&ring[8 * word], &packet->bytes[8 * word], 8);
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

TEST_CASE("where a flush does not wait, packets and tails that come meanwhile are not forgotten") {
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64));
  SlowMemory memory(mailboxes.blocks, 0);
  Ledger ledger(1, 0);
  Mailbox slow(memory, mailboxes.topology, 0, MailboxMap::capacity_for(64), ledger);
  // A second packet is posted while the first one travels, and a second tail is stored while the first tail does.
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

}  // namespace
}  // namespace hearsay::arrival_test

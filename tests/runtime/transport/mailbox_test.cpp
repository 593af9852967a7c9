// The mailbox between threads of one process: its law under load, its limits, and what it does with damaged bytes.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "tests/runtime/transport/local_mailboxes.hpp"
#include "tests/runtime/transport/stress.hpp"

namespace hearsay::mailbox_test {
namespace {

using test::LocalMailboxes;
using test::packet_of;
using test::StressPlan;
using test::StressRank;
using test::StressResult;

void flood_with_threads(int ranks, const StressPlan& plan, int patience = 0) {
  LocalMailboxes mailboxes(ranks, MailboxMap::capacity_for(plan.largest_packet()), patience);
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
    flood_with_threads(ranks, {.packets_per_edge = 3000, .largest_body_words = 64, .seed = 3}, 64);
  }
}

TEST_CASE("without rings nothing lies in anybody's memory, however many neighbours there are") {
  CHECK(MailboxMap{.degree = 4095, .capacity_bytes = 0}.total_bytes() == 0);
  LocalMailboxes mailboxes(3, 0);
  CHECK_FALSE(mailboxes[0].progress());
  CHECK_FALSE(mailboxes[0].sending());
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
  CHECK_FALSE(mailboxes[0].fits(0, 64));  // its bytes are free, but the sender has not heard of it
  mailboxes[1].progress();
  mailboxes[0].progress();
  CHECK(mailboxes[0].fits(0, 64));
}

TEST_CASE("what was for a dead neighbour counts as sent, and what it sends is not looked at; others notice nothing") {
  for (const int patience : {0, 64}) {
    for (const int steps_before : {0, 1, 2}) {  // how far the first packet is on its way
      LocalMailboxes mailboxes(3, MailboxMap::capacity_for(64), patience);
      mailboxes[0].post(0, packet_of(64, 0, 0));
      for (int step = 0; step < steps_before; ++step) mailboxes[0].progress();
      mailboxes[0].post(0, packet_of(64, 0, 1));
      mailboxes[0].drop(0);
      CHECK_FALSE(mailboxes[0].fits(0, 64));
      mailboxes[0].post(1, packet_of(64, 0, 1));
      mailboxes[1].post(0, packet_of(64, 1, 0));  // late, from the dead
      mailboxes[2].post(0, packet_of(64, 2, 0));
      for (int step = 0; step < 200; ++step)
        for (const int r : {0, 1, 2}) mailboxes[r].progress();
      CHECK_FALSE(mailboxes[0].sending());
      CHECK_FALSE(mailboxes[0].front(0));
      REQUIRE(mailboxes[0].front(1));
      REQUIRE(mailboxes[2].front(0));
      mailboxes[0].pop(1);
      CHECK(mailboxes[0].fits(1, 64));
    }
  }
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

// One packet under way is what an asynchronous edge has: then the next one must fit, wherever the ring stands.
TEST_CASE("so many packets fit as the ring was made for, wherever the first one starts, and are counted until popped") {
  constexpr std::size_t largest = 640;
  CHECK(rc::check("any sizes, any pace of the consumer", [] {
    const std::size_t packets = *rc::gen::element<std::size_t>(1, 2, 5);
    LocalMailboxes mailboxes(2, MailboxMap::capacity_for(largest, packets), 1 << 20, Mailbox::Tails::at_once);
    const auto sizes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(32, largest + 1));
    std::size_t under_way = 0;
    Iteration k = 0;
    for (const std::size_t bytes : sizes) {
      RC_ASSERT(mailboxes[0].under_way(0) == under_way);
      if (under_way < packets) {
        RC_ASSERT(mailboxes[0].fits(0, largest));
        mailboxes[0].post(0, packet_of(bytes, 0, k++));
        ++under_way;
      }
      mailboxes[0].progress();
      mailboxes[1].progress();
      if (under_way > 0 && (under_way == packets || *rc::gen::arbitrary<bool>())) {
        RC_ASSERT(mailboxes[1].front(0));
        mailboxes[1].pop(0);
        --under_way;
        mailboxes[1].progress();  // however few bytes it gives back, the tail travels now
        mailboxes[0].progress();
      }
    }
  }));
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
    for (int look = 0; look < Mailbox::most_looks; ++look) CHECK(mailboxes[1].progress());  // it may still come
    try {
      mailboxes[1].progress();
      FAIL("the damage went unnoticed");
    } catch (const CommunicationError& error) {
      CHECK(std::string(error.what()).find("from rank 0 to rank 1") != std::string::npos);
    }
  }
}

TEST_CASE("a length that changes after the packet has come is not used") {
  const std::size_t capacity = MailboxMap::capacity_for(256);
  const MailboxMap map{.degree = 1, .capacity_bytes = capacity};
  for (const std::uint64_t length :
       {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{capacity + 1}, ~std::uint64_t{0}}) {
    LocalMailboxes mailboxes(2, capacity);
    mailboxes[0].post(0, packet_of(256, 0, 7));
    mailboxes[0].progress();
    mailboxes[1].progress();
    REQUIRE(mailboxes[1].front(0));
    std::memcpy(&mailboxes.blocks[1][map.ring(0) + sizeof(PacketHeader::checksum)], &length, sizeof length);
    CHECK_THROWS_WITH_AS(mailboxes[1].front(0), doctest::Contains("from rank 0 to rank 1"), CommunicationError);
    CHECK_THROWS_AS(mailboxes[1].pop(0), CommunicationError);
  }
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
  CHECK(sender.header_bytes == 1000);       // no values in these packets; packets of 128 bytes need no marker
  CHECK(sender.control_bytes == 10 * 8);    // heads
  CHECK(receiver.control_bytes == 10 * 8);  // tails
  CHECK(sender.puts == 20);
  CHECK(receiver.packets == 0);
}

}  // namespace
}  // namespace hearsay::mailbox_test

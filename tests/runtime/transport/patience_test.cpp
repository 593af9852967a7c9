// Heads and tails that nobody waits for are put off, travel together, and come in the end.
#include <cstring>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "runtime/transport/ring_position.hpp"
#include "tests/runtime/transport/local_mailboxes.hpp"

namespace hearsay::patience_test {
namespace {

using test::LocalMailboxes;
using test::packet_of;

constexpr int patience = 5;
constexpr std::size_t word = sizeof(std::uint64_t), roomy = MailboxMap::line * 64;

/// Sends a packet from rank 0 to rank 1; both look once.
void send(LocalMailboxes& mailboxes, std::size_t bytes, Iteration k) {
  mailboxes[0].post(0, packet_of(bytes, 0, k));
  mailboxes[0].progress();
  mailboxes[1].progress();
}

std::uint64_t control_bytes(const LocalMailboxes& mailboxes, std::size_t rank) {
  return mailboxes.ledgers[rank]->totals().control_bytes;
}

TEST_CASE("small packets are taken at once; their heads come together, after as many looks as patience says") {
  LocalMailboxes mailboxes(2, roomy, patience);
  for (Iteration k = 0; k < patience - 1; ++k) {
    send(mailboxes, 64, k);
    REQUIRE(mailboxes[1].front(0));
    CHECK(packet_header(*mailboxes[1].front(0)).iteration == k);
    mailboxes[1].pop(0);
  }
  CHECK(mailboxes[0].sending());
  CHECK(control_bytes(mailboxes, 0) == 0);
  CHECK(mailboxes[0].progress());
  CHECK_FALSE(mailboxes[0].sending());
  CHECK(control_bytes(mailboxes, 0) == word);  // one head for all
  CHECK_FALSE(mailboxes[0].progress());
  CHECK(control_bytes(mailboxes, 0) == word);

  send(mailboxes, 64, patience);
  int looks = 1;
  for (; mailboxes[0].sending(); ++looks) mailboxes[0].progress();
  CHECK(looks == patience);
}

TEST_CASE("tails come together, too, after as many looks") {
  LocalMailboxes mailboxes(2, roomy, patience);
  for (Iteration k = 0; k < 2; ++k) {
    send(mailboxes, 64, k);
    mailboxes[1].pop(0);
  }
  int looks = 1;  // the second packet's, when the first packet was taken
  for (; control_bytes(mailboxes, 1) == 0; ++looks) mailboxes[1].progress();
  CHECK(looks == patience);
  for (int i = 0; i < 2 * patience; ++i) CHECK_FALSE(mailboxes[1].progress());
  CHECK(control_bytes(mailboxes, 1) == word);  // one tail for both
}

TEST_CASE("who waits for a head or for room is not kept waiting") {
  constexpr std::size_t large = Mailbox::early_bytes + 8;
  for (const auto& [bytes, first, second] : std::vector<std::tuple<std::size_t, Iteration, Iteration>>{
           {large, 0, 1},  // too large to be taken without its head
           {64, 3, 3},     // of the same iteration: not told from what the ring held before
       }) {
    LocalMailboxes mailboxes(2, MailboxMap::capacity_for(large), patience);
    for (const Iteration k : {first, second}) {
      send(mailboxes, bytes, k);
      REQUIRE(mailboxes[1].front(0));
      mailboxes[1].pop(0);
    }
    CHECK_FALSE(mailboxes[0].sending());
  }
  LocalMailboxes mailboxes(2, MailboxMap::capacity_for(64), patience);  // a packet is a third of the ring
  for (Iteration k = 0; k < 10; ++k) {
    REQUIRE(mailboxes[0].fits(0, 64));
    send(mailboxes, 64, k);
    REQUIRE(mailboxes[1].front(0));  // also where the ring starts anew
    mailboxes[1].pop(0);
    mailboxes[1].progress();
    mailboxes[0].progress();
    CHECK(control_bytes(mailboxes, 1) == word * static_cast<std::uint64_t>(k + 1));
  }
}

TEST_CASE("with a tail put off, one of the largest packets fits behind what is consumed, wherever it starts") {
  constexpr std::size_t largest = 640;
  CHECK(rc::check("any small packets before it", [&] {
    LocalMailboxes mailboxes(2, MailboxMap::capacity_for(largest), 1 << 20);
    const auto sizes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(32, largest + 1));
    Iteration k = 0;
    for (const std::size_t bytes : sizes) {
      RC_ASSERT(mailboxes[0].fits(0, bytes));
      RC_ASSERT(mailboxes[0].fits(0, largest));
      send(mailboxes, bytes, k++);
      RC_ASSERT(mailboxes[1].front(0));
      mailboxes[1].pop(0);
      mailboxes[1].progress();
      mailboxes[0].progress();
    }
  }));
}

TEST_CASE("a damaged packet whose head is put off is found when it comes") {
  LocalMailboxes mailboxes(2, roomy, patience);
  auto packet = std::make_shared<OutgoingPacket>(*packet_of(64, 0, 0));
  packet->bytes.back() = std::byte{1};  // the checksum disagrees
  mailboxes[0].post(0, packet);
  for (int look = 1; look < patience; ++look) {
    mailboxes[0].progress();
    mailboxes[1].progress();
    CHECK_FALSE(mailboxes[1].front(0));
  }
  mailboxes[0].progress();
  CHECK_THROWS_AS(test::look_often(mailboxes[1]), CommunicationError);
}

TEST_CASE("a position's index is its count modulo the capacity, and what begins at it is not split") {
  CHECK(rc::check("any steps", [] {
    const std::size_t capacity = MailboxMap::line * *rc::gen::inRange<std::size_t>(1, 20);
    RingPosition position(capacity);
    std::uint64_t count = 0;
    for (const std::size_t length :
         *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, capacity + 1))) {
      const RingPosition start = position.start_of(length);
      RC_ASSERT(start.index() + length <= capacity);
      RC_ASSERT(start.count() == count || start.index() == 0U);
      RC_ASSERT(start.count() < count + capacity);
      position = start;
      position.advance(length);
      count = start.count() + length;
      RC_ASSERT(position.count() == count);
      RC_ASSERT(position.index() == count % capacity);
      RC_ASSERT(position.rest() == capacity - position.index());
    }
  }));
}

}  // namespace
}  // namespace hearsay::patience_test

// What may be seen of a word or a packet while it is being written, and what is then believed.
#include <cstring>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "runtime/transport/whole_word.hpp"
#include "tests/runtime/transport/local_mailboxes.hpp"
#include "tests/support/torn_memory.hpp"

namespace hearsay::torn_test {
namespace {

using test::LocalBlocks;
using test::TornMemory;

constexpr std::size_t largest = 320;

/// Rank 0 sends to rank 1 over torn memory; every packet's bytes follow from its number.
class TornEdge {
 public:
  TornEdge(TornMemory::Packets packets, int patience, std::uint64_t seed)
      : random_(seed),
        blocks_(std::vector<std::size_t>(2, MailboxMap{.degree = 1, .capacity_bytes = capacity}.total_bytes())),
        memories_{TornMemory(blocks_, 0, packets, patience, scramble(seed)),
                  TornMemory(blocks_, 1, packets, patience, scramble(seed + 1))},
        sender_(memories_[0], topology_, 0, capacity, ledgers_[0]),
        receiver_(memories_[1], topology_, 1, capacity, ledgers_[1]) {}

  /// Sends, looks and takes in any order until `packets` have been taken. False if one is not the sender's next.
  bool run(Iteration packets) {
    while (taken_ < packets) {
      if (const SharedPacket packet = packet_of(posted_); posted_ < packets && sender_.fits(0, packet->bytes.size())) {
        sender_.post(0, packet);
        ++posted_;
      }
      (random_.below(2) == 0 ? sender_ : receiver_).progress();
      const auto front = receiver_.front(0);
      if (!front || random_.below(3) == 0) continue;
      if (!std::ranges::equal(*front, packet_of(taken_++)->bytes)) return false;
      receiver_.pop(0);
    }
    return true;
  }

 private:
  static inline const std::size_t capacity = MailboxMap::capacity_for(largest);

  /// Pairs are of one iteration: the second one waits for its head.
  SharedPacket packet_of(Iteration number) const {
    Random random(static_cast<std::uint64_t>(number));
    auto packet = std::make_shared<OutgoingPacket>();
    packet->bytes.resize(sizeof(PacketHeader) + random.below(largest - sizeof(PacketHeader) + 1));
    for (std::byte& byte : packet->bytes) byte = static_cast<std::byte>(random.below(256));
    seal_packet(packet->bytes, 0, number / 2, 0);
    return packet;
  }

  Random random_;
  Topology topology_ = test::complete_graph(2);
  LocalBlocks blocks_;
  TornMemory memories_[2];
  Ledger ledgers_[2]{Ledger(1, 0), Ledger(1, 0)};
  Mailbox sender_, receiver_;
  Iteration posted_ = 0, taken_ = 0;
};

TEST_CASE(
    "heads and tails of which any bytes are seen first: exactly once, whole, in order, and nothing is overwritten") {
  for (const int patience : {0, 5})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(patience);
      CAPTURE(seed);
      CHECK(TornEdge(TornMemory::Packets::at_once, patience, seed).run(1000));
    }
}

TEST_CASE("packets that arrive in pieces behind their head are waited for") {
  for (const int patience : {0, 5})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(patience);
      CAPTURE(seed);
      CHECK(TornEdge(TornMemory::Packets::late, patience, seed).run(1000));
    }
}

TEST_CASE("a word of a position says that position, wherever it is looked for from") {
  CHECK(rc::check("any two positions", [] {
    const std::uint64_t first = position_step * (*rc::gen::arbitrary<std::uint64_t>() >> 8);
    const std::uint64_t ahead = position_step * *rc::gen::arbitrary<std::uint32_t>();
    RC_ASSERT(position_of_word(word_of_position(first + ahead), first, first + ahead) == first + ahead);
    RC_ASSERT(ahead == 0U || !position_of_word(word_of_position(first + ahead), first, first + ahead - 1));
  }));
  CHECK(word_of_position(0) == 0);
}

TEST_CASE("halves of two words are no word") {
  CHECK(rc::check("any two positions", [] {
    const std::uint64_t low = 0xffffffff;
    const std::uint64_t a = position_step * *rc::gen::arbitrary<std::uint32_t>();
    const std::uint64_t b = position_step * *rc::gen::arbitrary<std::uint32_t>();
    const std::uint64_t torn = (word_of_position(a) & low) | (word_of_position(b) & ~low);
    RC_ASSERT(a == b || !position_of_word(torn, 0, position_range - position_step));
  }));
}

TEST_CASE("a word that never becomes whole is an error that names the edge") {
  const std::size_t capacity = MailboxMap::capacity_for(largest);
  const MailboxMap map{.degree = 1, .capacity_bytes = capacity};
  for (const std::size_t damaged : {map.head(0), map.tail(0)}) {
    test::LocalMailboxes mailboxes(2, capacity);
    mailboxes.blocks[1][damaged] = std::byte{1};
    std::string message;
    try {
      test::look_often(mailboxes[1]);
    } catch (const CommunicationError& error) {
      message = error.what();
    }
    CHECK(message.find("from rank 0 to rank 1") != std::string::npos);
  }
}

TEST_CASE("a ring whose positions could not be told apart is refused before there is one") {
  CHECK(MailboxMap::capacity_for(std::size_t{1} << 35) == std::size_t{3} << 35);
  CHECK_THROWS_AS(MailboxMap::capacity_for((std::size_t{1} << 35) + 1), ConfigError);
}

}  // namespace
}  // namespace hearsay::torn_test

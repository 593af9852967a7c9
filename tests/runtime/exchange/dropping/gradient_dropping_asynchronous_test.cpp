// Gradient dropping without waiting: nobody waits, late pushes count in full, and in the end everything has arrived.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/dropping/dropping_job.hpp"

namespace gradient_dropping_asynchronous_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

std::string dropping(const std::string& selector, const std::string& more = "", const std::string& keys = "") {
  return "exchange: {name: gradient_dropping, schedule: asynchronous" + keys + "}\nsparsify: {selector: {" + selector +
         "}" + more + "}\n";
}

std::function<void(int, Iteration, std::span<float>)> constant(float value) {
  return [value](int, Iteration, std::span<float> g) { std::ranges::fill(g, value); };
}

/// Values that fp16 cannot hold.
void large_gradient(int rank, Iteration k, std::span<float> g) {
  integer_gradient(rank, k, g);
  for (float& value : g) value *= 301.0F;
}

/// Two ranks on one thread, to be driven in any order.
struct Pair {
  explicit Pair(const std::string& yaml)
      : world(yaml, 2), first(world.world.make_rank(0)), second(world.world.make_rank(1)), a(*first), b(*second) {}
  DroppingWorld world;
  std::unique_ptr<LocalRank> first, second;
  DroppingRank a, b;
};

}  // namespace

TEST_CASE("a late push counts 1/P, once, whenever it comes") {
  Pair pair(dropping("name: topk, density: 1.0"));
  pair.b.iterate(constant(6.0F));
  pair.a.iterate(constant(2.0F));  // what came from the other rank is read in the next iteration
  pair.a.iterate(constant(2.0F));
  pair.a.iterate(constant(2.0F));
  const auto own = [&](std::size_t k) { return pair.a.outcome.came_out[k][0]; };
  CHECK(own(0) == 1.0F);
  CHECK(own(1) == 1.0F + 3.0F);
  CHECK(own(2) == 1.0F);
  // Two pushes that are read at once count as two.
  pair.b.iterate(constant(6.0F));
  pair.b.iterate(constant(8.0F));
  pair.a.iterate(no_gradient);
  pair.a.iterate(no_gradient);
  CHECK(own(3) + own(4) == 3.0F + 4.0F);
}

TEST_CASE("a rank that has nothing to compute goes on serving: pushes move its master, clients pull that") {
  Pair pair(dropping("name: topk, density: 1.0"));
  const Vector start = pair.a.own();
  CHECK_FALSE(pair.a.idle());
  for (int k = 0; k < 3; ++k) {
    pair.b.iterate(constant(6.0F));
    pair.a.idle();
  }
  for (int k = 0; k < 4; ++k) {  // what could not leave at once does now
    pair.b.iterate(no_gradient);
    pair.a.idle();
  }
  CHECK_FALSE(pair.a.idle());
  CHECK(pair.a.own()[0] == start[0] - 3 * 6.0F);
  for (int k = 0; k < 4; ++k) {
    pair.b.iterate(no_gradient);
    pair.a.idle();
  }
  const Vector mine = pair.a.own();
  CHECK(std::ranges::equal(mine, std::span(pair.b.outcome.x.back()).first(mine.size())));
}

TEST_CASE("a client that was away gets the server's change in one piece") {
  Pair pair(dropping("name: topk, density: 1.0"));
  const Vector start = pair.b.own();
  for (int k = 0; k < 2; ++k) pair.a.iterate(constant(2.0F));
  pair.b.iterate(no_gradient);
  pair.b.iterate(no_gradient);
  const Vector& theirs = pair.b.outcome.x.back();
  const Vector mine = pair.a.own();
  CHECK(std::ranges::equal(mine, std::span(theirs).first(mine.size())));
  CHECK(mine[0] == pair.world.initial[0] - 2 * 2.0F);  // its own two pushes
  // and what the first rank has pushed has moved the second one's shard by as much
  CHECK(pair.b.own()[0] == start[0] - 2 * 2.0F);
}

TEST_CASE("a rank that stops receiving holds nobody up, and what it misses stays owed") {
  for (const char* selector : {"name: topk, density: 1.0", "name: topk, density: 0.2", "name: sampled, density: 0.2"}) {
    CAPTURE(selector);
    Pair pair(dropping(selector));
    for (int k = 0; k < 50; ++k) pair.a.iterate(integer_gradient);
    const LedgerTotals totals = pair.first->ledger.totals();
    CHECK(totals.deferred > 0);
    CHECK(totals.packets >= 2);
    CHECK(totals.messages <= 2 * totals.packets);
    CHECK(totals.bytes() - totals.control_bytes <= totals.packets * pair.world.packet_bound() + 64);
    const Vector residual = pair.a.residual();
    CHECK(std::ranges::any_of(residual, [](float r) { return r != 0.0F; }));
    for (int k = 0; k < 60; ++k) {
      pair.b.iterate(k < 5 ? std::function(integer_gradient) : no_gradient);
      pair.a.iterate(no_gradient);
    }
    const Vector expected = settled({pair.a.outcome, pair.b.outcome}, 372);
    CHECK(pair.a.outcome.x.back() == expected);
    CHECK(pair.b.outcome.x.back() == expected);
    CHECK(pair.a.residual() == Vector(372));
    CHECK(pair.b.residual() == Vector(372));
  }
}

TEST_CASE("after all gradients are in, every rank comes to hold every master, with nothing lost and nothing owed") {
  for (const char* sparsifier :
       {"name: topk, density: 0.1", "name: sampled, density: 0.1, scope: per_segment", "name: topk, density: 1.0",
        "name: topk, density: 0.2}, codec: {name: smallest}, quantiser: {name: fp16", "name: mstopk, density: 0.2",
        "name: dense", "name: threshold, threshold: 1", "name: topk, density: 0.1}, codec: {name: delta",
        "name: topk, density: 0.1}, codec: {name: bitmap"}) {
    const bool any_ranks = std::string(sparsifier) == "name: topk, density: 0.1";
    for (const int ranks : any_ranks ? std::vector{1, 2, 3, 5, 6, 7, 8, 12} : std::vector{2, 5}) {
      for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
        CAPTURE(sparsifier);
        CAPTURE(ranks);
        const std::string yaml = dropping(sparsifier);
        DroppingWorld world(yaml, ranks, engine);
        std::vector<DroppingOutcome> outcomes(static_cast<std::size_t>(ranks));
        std::atomic<int> settled_ranks{0};
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        std::atomic<bool> late{false};
        world.run([&](LocalRank& rank) {
          DroppingRank one(rank);
          Random random(stream_seed(31, "delays", static_cast<std::uint64_t>(rank.rank())));
          for (int k = 0; k < 20; ++k) {
            one.iterate(large_gradient);
            if (random.below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
          }
          outcomes[static_cast<std::size_t>(rank.rank())] = one.outcome;
          rank.barrier();
          const Vector expected = settled(outcomes, 372);
          const Vector nothing(372);
          bool all = false;
          // How long it takes is up to the machine; that it happens is not.
          for (int k = 0; !all && !late; ++k) {
            one.iterate(no_gradient);
            if (k % 10 != 9) continue;
            const bool mine = one.outcome.x.back() == expected && one.residual() == nothing;
            rank.barrier();
            if (mine) ++settled_ranks;
            if (rank.rank() == 0) late = std::chrono::steady_clock::now() > deadline;
            rank.barrier();
            all = settled_ranks == rank.topology.ranks();
            rank.barrier();
            if (rank.rank() == 0) settled_ranks = 0;
            rank.barrier();
          }
          CHECK(all);
          const std::uint64_t packets = rank.ledger.totals().packets;
          for (int k = 0; k < 3; ++k) one.iterate(no_gradient);
          rank.barrier();
          CHECK(one.outcome.x.back() == expected);
          CHECK(rank.ledger.totals().packets == packets);  // silence once there is nothing to say
        });
      }
    }
  }
}

TEST_CASE("a packet stands for the iterations in which none could go, eight at most") {
  const auto for_the_other = [](int, Iteration, std::span<float> g) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = i < g.size() / 2 ? 0.0F : static_cast<float>(1 + i);
  };
  for (int deferred = 0; deferred <= 9; ++deferred) {
    CAPTURE(deferred);
    Pair pair(dropping("name: topk, density: 0.05"));
    const auto pushed = [&] { return pair.first->ledger.totals().payload_bytes / sizeof(float); };
    const std::size_t n = pair.world.layout.size();
    for (int k = 0; k < 2; ++k) pair.a.iterate(for_the_other);  // as many packets as may be under way
    CHECK(pushed() == 2 * kept_count(0.05, n));
    for (int k = 0; k < deferred; ++k) pair.a.iterate(for_the_other);
    const std::uint64_t before = pushed();
    CHECK(before == 2 * kept_count(0.05, n));
    int iterations = deferred;
    while (pushed() == before && iterations < deferred + 5) {  // room is there before its sender knows of it
      pair.b.iterate(no_gradient);
      pair.a.iterate(for_the_other);
      ++iterations;
    }
    CHECK(pushed() - before == kept_count(0.05 * std::min(8, iterations), n));
  }
}

TEST_CASE("a packet is never longer than its bound, even if all that is pushed goes to one server") {
  for (const char* sparsifier :
       {"name: dense", "name: topk, density: 0.3", "name: sampled, density: 0.3", "name: threshold, threshold: 0.5",
        "name: topk, density: 0.3}, codec: {name: bitmap}, quantiser: {name: one_bit, centre: row_mean",
        "name: topk, density: 0.3}, codec: {name: delta}, quantiser: {name: int8"}) {
    CAPTURE(sparsifier);
    for (const std::string keys : {"", ", pull_density: 1.0"}) {
      Pair pair(dropping(sparsifier, "", keys));
      const auto half = [](std::size_t which) {  // of the block, without zeros
        return [which](int rank, Iteration k, std::span<float> g) {
          integer_gradient(rank, k, g);
          for (std::size_t i = 0; i < g.size(); ++i) g[i] = i / 186 == which ? g[i] + 10.0F : 0.0F;
        };
      };
      const auto bytes = [&] {
        const LedgerTotals totals = pair.first->ledger.totals();
        CHECK(totals.payload_bytes + totals.index_bytes < totals.bytes() - totals.control_bytes);
        return totals.bytes() - totals.control_bytes;
      };
      pair.a.iterate(half(0));  // the own shard moves: something to pull, more than one packet holds
      const std::uint64_t first = bytes();
      CHECK(first <= pair.world.packet_bound());
      pair.a.iterate([&](int rank, Iteration k, std::span<float> g) {
        half(1)(rank, k, g);
        g[0] = g[1] = 1.0F;
      });
      CHECK(pair.first->ledger.totals().packets == 2);
      CHECK(pair.first->ledger.totals().messages >= 2);
      CHECK(bytes() - first <= pair.world.packet_bound());
      if (std::string(sparsifier) == "name: dense") CHECK(first == 32 + 8 + 8 + 4 * 186);
    }
  }
}

// 32 bytes of packet header; 16 of headers for a push and a pull each; the values; room for positions of half of them.
TEST_CASE("a ring holds what P ranks can send: a push for a whole shard, and the pull of one") {
  for (const int ranks : {2, 3, 5, 8}) {
    CAPTURE(ranks);
    const std::string yaml = dropping("name: dense");
    DroppingWorld world(yaml, ranks);
    const std::size_t shard = part_of(world.layout.size(), ranks, 0).length;
    CHECK(world.packet_bound() == 32 + 2 * (16 + 4 * shard + 4 * (shard / 2)));
    const auto rank = world.world.make_rank(0);
    DroppingRank one(*rank);
    one.iterate(constant(2.0F));
    CHECK(rank->ledger.totals().deferred == 0);
    const EdgeCounters& edge = rank->ledger.edge(0);
    CHECK(edge.bytes() - edge.control_bytes.value() == 32 + 2 * (16 + 4 * shard));
  }
}

TEST_CASE("the age of what came from the others is on record") {
  Pair pair(dropping("name: topk, density: 0.1"));
  for (int k = 0; k < 3; ++k) pair.b.iterate(integer_gradient);
  std::this_thread::sleep_for(10 * Stamp::step);  // a packet says when it was sent in such steps
  for (int k = 0; k < 6; ++k) pair.a.iterate(integer_gradient);
  CHECK(pair.first->ledger.staleness(0).maximum.value() == 6);  // begun since the last one was sent
}

namespace {

/// A packet of iteration 4 from rank 1 with one part, which says that `claimed` bytes follow: there are `bytes` zeros.
std::shared_ptr<OutgoingPacket> part_packet(std::uint64_t kind, std::size_t bytes, std::uint64_t claimed) {
  auto packet = std::make_shared<OutgoingPacket>();
  const std::uint64_t header = kind << 56 | claimed;
  packet->bytes.resize(sizeof(PacketHeader) + sizeof header + bytes);
  std::memset(packet->bytes.data(), 0, packet->bytes.size());  // RawBytes are not cleared
  std::memcpy(packet->bytes.data() + sizeof(PacketHeader), &header, sizeof header);
  seal_packet(packet->bytes, 1, 4, 1);
  return packet;
}

/// Lets the first rank receive what the second one has sent.
void deliver(Pair& pair, const std::shared_ptr<OutgoingPacket>& packet) {
  pair.second->mailbox.post(0, packet);
  pair.second->mailbox.progress();
  pair.first->mailbox.progress();
  pair.a.iterate(integer_gradient);
}

}  // namespace

TEST_CASE("a packet that does not fit is an error that names the ranks") {
  for (const auto& packet : {part_packet(0, 3, 3), part_packet(1, 3, 3), part_packet(7, 8, 8), part_packet(0, 8, 9),
                             part_packet(1, 9, 8), part_packet(0, 20, 20), part_packet(0, 10, 8)}) {
    Pair pair(dropping("name: topk, density: 0.1"));
    std::memset(packet->bytes.data() + packet->bytes.size() - 2, 0x7F, 2);
    seal_packet(packet->bytes, 1, 4, 1);
    CHECK_THROWS_WITH_AS(deliver(pair, packet), doctest::Contains("packet of iteration 4 from rank 1 to rank 0"),
                         CommunicationError);
  }
}

TEST_CASE("the length of a part has more than 32 bits") {
  constexpr std::size_t nothing = 8;  // a message of no entries
  for (const std::uint64_t kind : {0U, 1U}) {
    Pair pair(dropping("name: topk, density: 0.1"));
    CHECK_NOTHROW(deliver(pair, part_packet(kind, nothing, nothing)));
    for (const std::uint64_t beyond : {std::uint64_t{1} << 32, std::uint64_t{1} << 40, std::uint64_t{1} << 55}) {
      Pair other(dropping("name: topk, density: 0.1"));
      CHECK_THROWS_WITH_AS(deliver(other, part_packet(kind, nothing, beyond + nothing)),
                           doctest::Contains("a part is longer than its packet"), CommunicationError);
    }
  }
}

}  // namespace gradient_dropping_asynchronous_test

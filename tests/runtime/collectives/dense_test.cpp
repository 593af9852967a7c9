// Dense collectives on small integers stored as floats: every sum is exact.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/ring.hpp"
#include "tests/support/local_peers.hpp"

namespace dense_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 4, 5, 6, 7, 8, 12};

float value_of(int rank, std::size_t i) {
  return static_cast<float>((rank * 37 + static_cast<int>(i) * 11) % 101 - 50);
}

std::vector<float> values_of(int rank, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = value_of(rank, i);
  return values;
}

std::vector<float> total(int ranks, std::size_t n) {
  std::vector<float> sum(n);
  for (int r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) sum[i] += value_of(r, i);
  return sum;
}

}  // namespace

TEST_CASE("parts cover all values once, in order, and differ by one value at most") {
  for (const std::size_t n : {0U, 1U, 2U, 7U, 100U}) {
    for (const int parts : worlds) {
      std::size_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Part part = part_of(n, parts, i);
        CHECK(part.begin == next);
        CHECK(part.length >= n / static_cast<std::size_t>(parts));
        CHECK(part.length <= n / static_cast<std::size_t>(parts) + 1);
        next += part.length;
      }
      CHECK(next == n);
    }
  }
}

TEST_CASE("the ring's sum is everybody's sum, on every member") {
  for (const int ranks : worlds) {
    for (const std::size_t n : {0U, 1U, 3U, 8U, 101U}) {
      CAPTURE(ranks);
      CAPTURE(n);
      PostOffice office(ranks);
      run_peers(office, [&](LocalPeers& peers) {
        std::vector<float> values = values_of(peers.rank(), n);
        ring_all_reduce(Group(peers), values);
        CHECK(values == total(ranks, n));
      });
      CHECK(office.empty());
      for (int r = 0; r < ranks; ++r) {
        const auto p = static_cast<std::size_t>(ranks);
        CHECK(office.traffic(r).messages == 2 * (p - 1));
        if (n % p == 0) CHECK(office.traffic(r).bytes == 2 * (p - 1) * n / p * 4);
        CHECK(office.traffic(r).payload_bytes == office.traffic(r).bytes);
      }
    }
  }
}

TEST_CASE("reduce-scatter leaves each member the sum of its part") {
  for (const int ranks : worlds) {
    PostOffice office(ranks);
    run_peers(office, [&](LocalPeers& peers) {
      const Group group(peers);
      std::vector<float> values = values_of(peers.rank(), 23);
      reduce_scatter(group, values);
      const auto expected = total(ranks, 23);
      const Part part = part_of(23, ranks, group.index());
      for (std::size_t i = part.begin; i < part.begin + part.length; ++i) CHECK(values[i] == expected[i]);
    });
  }
}

TEST_CASE("a group of some ranks, in an order of its own, talks among itself only") {
  PostOffice office(6);
  run_peers(office, [&](LocalPeers& peers) {
    if (peers.rank() % 2 == 0) return;
    std::vector<float> values = values_of(peers.rank(), 10);
    ring_all_reduce(Group(peers, {5, 1, 3}), values);
    for (std::size_t i = 0; i < 10; ++i) CHECK(values[i] == value_of(1, i) + value_of(3, i) + value_of(5, i));
  });
  for (const int rank : {0, 2, 4}) CHECK(office.traffic(rank).messages == 0);
  LocalPeers outsider(office, 2);
  CHECK_THROWS_AS(Group(outsider, {1, 3}), std::logic_error);
}

TEST_CASE("all-gather brings every member's message, whatever its length, in the order of the group") {
  for (const int ranks : worlds) {
    CAPTURE(ranks);
    PostOffice office(ranks);
    const auto message_of = [](int rank) {
      return std::vector<std::byte>(static_cast<std::size_t>(rank * rank % 7), static_cast<std::byte>(rank));
    };
    run_peers(office, [&](LocalPeers& peers) {
      const auto bytes = message_of(peers.rank());
      const auto all = all_gather(Group(peers), {.bytes = bytes, .payload_bytes = bytes.size(), .index_bytes = 0});
      REQUIRE(all.size() == static_cast<std::size_t>(ranks));
      for (int r = 0; r < ranks; ++r) CHECK(all[static_cast<std::size_t>(r)].bytes == message_of(r));
    });
    CHECK(office.empty());
    std::uint64_t payload = 0;
    std::size_t lengths = 0, steps = 0;
    for (int r = 0; r < ranks; ++r) {
      payload += office.traffic(r).payload_bytes;
      lengths += message_of(r).size();
    }
    for (int d = 1; d < ranks; d *= 2) ++steps;
    CHECK(payload == lengths * static_cast<std::size_t>(ranks - 1));  // each message reaches each other member once
    for (int r = 0; r < ranks; ++r) CHECK(office.traffic(r).messages == steps);
  }
}

TEST_CASE("an all-gather's message that is too short, too long or contradicts itself is refused by the sender's rank") {
  const auto answer = [](std::uint64_t bytes, std::uint64_t payload, std::size_t behind) {
    PostOffice office(2);
    std::string words;
    run_peers(office, [&](LocalPeers& peers) {
      if (peers.rank() == 0) {  // what another build may send
        std::vector<std::byte> message(3 * sizeof(std::uint64_t) + behind), ignored;
        std::memcpy(message.data(), &bytes, sizeof bytes);
        std::memcpy(message.data() + sizeof bytes, &payload, sizeof payload);
        peers.exchange(1, OwnedMessage{.bytes = message}.view(), 1, ignored);
        return;
      }
      try {
        all_gather(Group(peers), {.bytes = std::vector<std::byte>(4)});
      } catch (const CommunicationError& error) {
        words = error.what();
      }
    });
    return words;
  };
  CHECK(answer(4, 4, 4) == "");
  CHECK(answer(4, 4, 3).find("rank 0") != std::string::npos);
  CHECK(answer(~std::uint64_t{0}, 4, 4).find("rank 0") != std::string::npos);
  CHECK(answer(4, 5, 4).find("contradicts itself") != std::string::npos);
  CHECK(answer(4, 4, 5).find("1 bytes after its last part") != std::string::npos);
}

}  // namespace dense_test

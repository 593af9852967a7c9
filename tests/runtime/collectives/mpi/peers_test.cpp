// Point-to-point messages over MPI, and the same collectives as in one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/gtopk.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"
#include "tests/runtime/collectives/support.hpp"
#include "tests/support/mpi_environment.hpp"

namespace peers_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

struct Ends {
  std::uint64_t sent_messages = 0, sent_bytes = 0;
  mpi::Peers peers{{.idle = [] {},
                    .sent =
                        [this](int, const Message& m) {
                          ++sent_messages;
                          sent_bytes += m.bytes.size();
                        }}};
};

OwnedMessage own_message(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {.bytes = {bytes.begin(), bytes.end()}};
}

/// Bytes in which a place or a rank that is taken for another one shows.
std::vector<std::byte> numbered_bytes(std::size_t length, int rank) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(((i + 1) * 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(rank) + 1)) >> 48);
  return bytes;
}

/// Memory that new allocations can have, as Linux says; 0 where nobody says.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::size_t kib = 0; file >> key >> kib; std::getline(file, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

}  // namespace

TEST_CASE("messages of every length arrive whole and in order, known length or not") {
  Ends ends;
  const int next = (ends.peers.rank() + 1) % ends.peers.size();
  const int previous = (ends.peers.rank() + ends.peers.size() - 1) % ends.peers.size();
  if (ends.peers.size() == 1) return;
  for (const std::size_t length : {0U, 1U, 100U, 5000U, 3'000'000U}) {
    std::vector<int> out(length, ends.peers.rank() + static_cast<int>(length)), in(length);
    ends.peers.exchange(next, {.bytes = std::as_bytes(std::span(out))}, previous,
                        std::as_writable_bytes(std::span(in)));
    CHECK(in == std::vector<int>(length, previous + static_cast<int>(length)));
    std::vector<std::byte> bytes;
    ends.peers.exchange(next, {.bytes = std::as_bytes(std::span(out))}, previous, bytes);
    REQUIRE(bytes.size() == length * sizeof(int));
    if (length > 0) CHECK(std::memcmp(bytes.data(), in.data(), bytes.size()) == 0);
  }
  CHECK(ends.sent_messages == 10);
  CHECK(ends.sent_bytes == 2 * 4 * (1 + 100 + 5000 + 3'000'000));
}

TEST_CASE("messages that travel in pieces arrive whole and in order, known length or not") {
  Ends ends;
  constexpr std::size_t piece = 64;
  ends.peers.split_at(piece);
  const int next = (ends.peers.rank() + 1) % ends.peers.size();
  const int previous = (ends.peers.rank() + ends.peers.size() - 1) % ends.peers.size();
  if (ends.peers.size() == 1) return;
  for (const std::size_t length : {std::size_t{0}, piece - 1, piece, piece + 1, 2 * piece, 100 * piece + 7}) {
    const std::vector<std::byte> out = numbered_bytes(length, ends.peers.rank());
    const std::vector<std::byte> expected = numbered_bytes(length, previous);
    std::vector<std::byte> known(length), unknown{std::byte{1}};
    ends.peers.exchange(next, {.bytes = out}, previous, known);
    ends.peers.exchange(next, {.bytes = out}, previous, unknown);
    CHECK(known == expected);
    CHECK(unknown == expected);
  }
  CHECK(ends.sent_messages == 12);
  std::vector<float> values(1000, static_cast<float>(ends.peers.rank()));
  ends.peers.library_sum(values);
  CHECK(values == std::vector<float>(1000, static_cast<float>(ends.peers.size() * (ends.peers.size() - 1) / 2)));
}

TEST_CASE("a message beyond 1 GiB arrives whole") {
  Ends ends;
  constexpr std::size_t length = (std::size_t{1} << 30) + 64, needed = std::size_t{8} << 30;
  float enough[1] = {available_bytes() >= needed ? 1.0F : 0.0F};
  ends.peers.library_sum(enough);
  if (ends.peers.size() != 2) return;  // one pair is enough, and what there may be memory for
  if (enough[0] < 2.0F) {
    MESSAGE("skipped: it needs 8 GiB of free memory");
    return;
  }
  if (ends.peers.rank() == 0) {
    ends.peers.send(1, {.bytes = numbered_bytes(length, 0)});
  } else {
    const std::vector<std::byte> in = ends.peers.receive(0);
    CHECK(in.size() == length);
    CHECK(in == numbered_bytes(length, 0));
  }
}

TEST_CASE("a communicator's operations in pieces do what they do at once") {
  mpi::Communicator world;
  for (const std::size_t piece : {std::size_t{8}, std::size_t{64}, mpi::longest_piece}) {
    CAPTURE(piece);
    world.split_at(piece);
    const auto length = static_cast<std::size_t>(64 * world.rank());
    const auto all = world.gather(numbered_bytes(length, world.rank()));
    CHECK(all.size() == static_cast<std::size_t>(world.rank() == 0 ? world.size() : 0));
    for (std::size_t r = 0; r < all.size(); ++r) CHECK(all[r] == numbered_bytes(64 * r, static_cast<int>(r)));
    std::vector<std::byte> news = numbered_bytes(1000, world.rank());
    world.broadcast(news, world.size() - 1);
    CHECK(news == numbered_bytes(1000, world.size() - 1));
    std::vector<double> most(100, static_cast<double>(world.rank())), sums(100, 1.0);
    world.maximum(most);
    world.sum(std::span(sums));
    CHECK(most == std::vector<double>(100, world.size() - 1.0));
    CHECK(sums == std::vector<double>(100, static_cast<double>(world.size())));
  }
}

TEST_CASE("ranks share a node where they share a machine; nodes are numbered by their first rank") {
  Ends ends;
  const std::string own = mpi_environment().host();
  std::vector<std::string> hosts;  // numbered as they first appear
  std::vector<int> expected;
  for (const OwnedMessage& message : all_gather(Group(ends.peers), own_message(own))) {
    const std::string host(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
    const auto known = std::ranges::find(hosts, host);
    expected.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(host);
  }
  CHECK(ends.peers.nodes() == expected);
}

TEST_CASE("dense sums: ours and the library's, the same bits on every rank") {
  Ends ends;
  for (const std::size_t n : {1U, 17U, 100'000U}) {
    std::vector<float> ring(n), expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (int r = 0; r < ends.peers.size(); ++r) expected[i] += static_cast<float>((r * 7 + static_cast<int>(i)) % 50);
      ring[i] = static_cast<float>((ends.peers.rank() * 7 + static_cast<int>(i)) % 50);
    }
    std::vector<float> library = ring;
    ring_all_reduce(Group(ends.peers), ring);
    ends.peers.library_sum(library);
    CHECK(ring == expected);
    CHECK(library == expected);
  }
}

TEST_CASE("gTopKAllReduce over MPI conserves mass and gives everybody the same") {
  Ends ends;
  const Codec codec = codec_of("plain", "none");
  const SparseWire wire(codec, 500, {});
  const Group group(ends.peers);
  for (const auto collective : {gtopk_tree, gtopk_butterfly}) {
    for (std::uint64_t round = 0; round < 10; ++round) {
      Random random(stream_seed(round, "own", static_cast<std::uint64_t>(ends.peers.rank())));
      const SparseVector own = random_vector(random, 500, 40);
      const GTopKResult found = collective(group, own, wire, {.k = 40, .rule = ResidualRule::owner});
      std::vector<SparseVector> put_in, returned;
      for (const OwnedMessage& m : all_gather(group, wire.encode(own))) put_in.push_back(wire.decode(m.bytes));
      for (const OwnedMessage& m : all_gather(group, wire.encode(found.returned)))
        returned.push_back(wire.decode(m.bytes));
      for (const OwnedMessage& m : all_gather(group, wire.encode(found.result)))
        CHECK(wire.decode(m.bytes) == found.result);
      CHECK(sum(found.result, sum(std::span<const SparseVector>(returned))) ==
            sum(std::span<const SparseVector>(put_in)));
    }
  }
}

}  // namespace peers_test

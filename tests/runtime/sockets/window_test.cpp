// Memories and messages of processes that are connected by sockets, on one host, on several, and on both.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "runtime/sockets/transport.hpp"
#include "tests/runtime/sockets/processes.hpp"

namespace hearsay::window_test {
namespace {

using namespace test;
using sockets::Network;
using Shared = std::shared_ptr<sockets::Network>;

std::vector<MeetingPlan> plans() {
  return {on_one_host(1), on_one_host(2), on_one_host(5), on_two_hosts(2), on_two_hosts(5), all_apart(4)};
}

constexpr std::size_t words = 40'000;  // more than a socket takes at once

std::uint64_t value_of(int from, int to, std::size_t at) {
  return (static_cast<std::uint64_t>(from) << 48) | (static_cast<std::uint64_t>(to) << 32) | at;
}

/// Every rank writes a block into every other's memory, and a word after it; waits until all words have come, and
/// counts what is not as it was written.
std::string write_to_all(const Shared& network) {
  sockets::Transport transport(network);
  const int me = transport.rank(), ranks = transport.ranks();
  const std::size_t block = (words + 1) * sizeof(std::uint64_t);
  RemoteMemory& memory = transport.open_memory(static_cast<std::size_t>(ranks) * block, {});
  const auto own = memory.own();
  for (const std::byte byte : own)
    if (byte != std::byte{}) return "not zero at first";
  std::vector<std::vector<std::uint64_t>> blocks(static_cast<std::size_t>(ranks), std::vector<std::uint64_t>(words));
  const std::uint64_t done = 1;
  transport.barrier();
  for (int to = 0; to < ranks; ++to) {
    auto& out = blocks[static_cast<std::size_t>(to)];
    for (std::size_t i = 0; i < words; ++i) out[i] = value_of(me, to, i);
    memory.put(std::as_bytes(std::span(out)), to, static_cast<std::size_t>(me) * block);
  }
  for (int to = 0; to < ranks; ++to)
    while (!memory.flush(to)) memory.sync();
  for (auto& out : blocks) std::fill(out.begin(), out.end(), 0);  // they may go: all is visible there
  for (int to = 0; to < ranks; ++to)
    memory.store(done, to, static_cast<std::size_t>(me) * block + words * sizeof(std::uint64_t));
  int wrong = 0;
  for (int from = 0; from < ranks; ++from) {
    auto* const at = reinterpret_cast<std::uint64_t*>(own.data() + static_cast<std::size_t>(from) * block);
    while (std::atomic_ref(at[words]).load(std::memory_order_acquire) == 0) memory.sync();
    for (std::size_t i = 0; i < words; ++i) wrong += at[i] == value_of(from, me, i) ? 0 : 1;
  }
  for (int to = 0; to < ranks; ++to)
    while (!memory.flush(to)) memory.sync();
  transport.barrier();
  return std::to_string(wrong);
}

TEST_CASE("what is flushed is whole, and a word that is stored after it comes after it") {
  for (const MeetingPlan& plan : plans()) {
    CAPTURE(plan.ranks);
    for (const std::string& said : all_done(run_processes(plan, write_to_all))) CHECK(said == "0");
  }
}

/// Looks at a word of the next rank until it is what that has written there itself.
std::string peek_at_next(const Shared& network) {
  sockets::Transport transport(network);
  RemoteMemory& memory = transport.open_memory(64, {});
  auto* const own = reinterpret_cast<std::uint64_t*>(memory.own().data());
  std::atomic_ref(own[1]).store(100 + static_cast<std::uint64_t>(transport.rank()), std::memory_order_release);
  const int next = (transport.rank() + 1) % transport.ranks();
  const std::uint64_t expected = 100 + static_cast<std::uint64_t>(next);
  while (memory.peek(next, sizeof(std::uint64_t)) != expected) memory.sync();
  transport.barrier();
  return "seen";
}

TEST_CASE("a word of another rank's can be asked for") {
  for (const MeetingPlan& plan : plans())
    for (const std::string& said : all_done(run_processes(plan, peek_at_next))) CHECK(said == "seen");
}

std::vector<std::byte> pattern(int from, int to, std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(from * 7 + to));
  return all;
}

/// Messages of many lengths around a ring, both ways at once, and a broadcast from every rank.
std::string talk(const Shared& network) {
  sockets::Transport transport(network);
  std::uint64_t told = 0, expected = 0;
  Peers& peers = transport.open_peers({.sent = [&](int, const Message& message) { told += message.bytes.size(); }});
  const int me = peers.rank(), ranks = peers.size(), next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  int wrong = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{65'000},
                                  std::size_t{65'536}, std::size_t{3'000'000}}) {
    if (ranks == 1) break;
    const auto out = pattern(me, next, bytes);
    std::vector<std::byte> in, known(bytes);
    peers.exchange(next, {.bytes = out}, before, in);
    wrong += in == pattern(before, me, bytes) ? 0 : 1;
    peers.exchange(next, {.bytes = out}, before, std::span(known));
    wrong += known == pattern(before, me, bytes) ? 0 : 1;
    expected += 2 * bytes;
  }
  for (int root = 0; root < ranks; ++root) {
    auto bytes = me == root ? pattern(root, root, 100'000) : std::vector<std::byte>(100'000);
    transport.broadcast(bytes, root);
    wrong += bytes == pattern(root, root, 100'000) ? 0 : 1;
  }
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(me + 1) * static_cast<float>(i);
  peers.library_sum(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    wrong += values[i] == static_cast<float>(ranks * (ranks + 1) / 2) * static_cast<float>(i) ? 0 : 1;
  if (ranks > 1) expected += values.size() * sizeof(float);
  return std::to_string(wrong) + (told == expected ? " counted" : " miscounted");
}

TEST_CASE("messages come whole and in order, broadcasts reach all, and the ledger is told what was handed over") {
  for (const MeetingPlan& plan : plans()) {
    CAPTURE(plan.ranks);
    for (const std::string& said : all_done(run_processes(plan, talk))) CHECK(said == "0 counted");
  }
}

TEST_CASE("no rank leaves a barrier before all have come") {
  for (const MeetingPlan& plan : plans()) {
    const auto times = all_done(run_processes(plan, [](const Shared& network) {
      sockets::Transport transport(network);
      const int me = transport.rank();
      std::vector<std::int64_t> both(2);
      const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
      for (int late = 0; late < transport.ranks(); ++late) {
        if (me == late) ::usleep(20'000);
        both[0] = now();
        transport.barrier();
        both[1] = now();
      }
      return as_text<std::int64_t>(both);
    }));
    std::int64_t last_came = 0, first_left = INT64_MAX;
    for (const std::string& text : times) {
      const auto both = from_text<std::int64_t>(text);
      last_came = std::max(last_came, both[0]);
      first_left = std::min(first_left, both[1]);
    }
    CHECK(first_left >= last_came);
  }
}

TEST_CASE("hosts are numbered by their first ranks") {
  for (const std::string& said : all_done(run_processes(on_two_hosts(5), [](const Shared& network) {
         const std::vector<int> nodes = network->nodes();
         return nodes == std::vector<int>{0, 1, 0, 1, 0} ? std::string("right") : std::string("wrong");
       })))
    CHECK(said == "right");
}

TEST_CASE("two transports of a job, one after the other and side by side, do not disturb each other") {
  for (const MeetingPlan& plan : {on_one_host(3), on_two_hosts(3)})
    for (const std::string& said : all_done(run_processes(plan, [](const Shared& network) {
           std::string all;
           for (int i = 0; i < 2; ++i) all += write_to_all(network) + talk(network);
           sockets::Transport beside(network);
           beside.open_memory(1000, {});
           return all + write_to_all(network);
         })))
      CHECK(said == "00 counted00 counted0");
}

}  // namespace
}  // namespace hearsay::window_test

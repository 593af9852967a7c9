// HiTopKComm on nodes of any size: nothing is lost, everybody gets the same, and bytes go where they should.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/global/parts/nodes.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hitopk_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

struct Grouping {
  int nodes, node_size;
  int ranks() const { return nodes * node_size; }
};
constexpr Grouping groupings[]{{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2},
                               {7, 1}, {1, 7}, {4, 2}, {2, 4}, {1, 8}, {8, 1}, {3, 4}, {4, 3}, {6, 2}};

std::string hitopk(int node_size, const std::string& selector, const std::string& more = "") {
  return "exchange: {name: hitopk, node_size: " + std::to_string(node_size) + "}\nsparsify: {selector: {" + selector +
         "}" + more + "}\n";
}

GlobalOptions integers(int ranks, Iteration iterations = 5) {
  return {.ranks = ranks, .iterations = iterations, .gradient = integer_gradient};
}

/// No zeros, and none in the sums over ranks: every message is full.
void positive_gradient(int rank, Iteration k, std::span<float> g) {
  integer_gradient(rank, k, g);
  for (float& value : g) value += 10.0F;
}

struct Bytes {
  std::uint64_t sums = 0, between = 0, last = 0;
  bool forwards = false;
  std::uint64_t total() const { return sums + between + last; }
};

/// What the comments of hitopk.cpp say, for full messages of the plain codec.
Bytes expected_bytes(const Grouping& grouping, double density, std::size_t values) {
  const auto m = static_cast<std::size_t>(grouping.nodes), n = static_cast<std::size_t>(grouping.node_size);
  const auto message = [&](int shard) {
    const std::size_t length = part_of(values, grouping.node_size, shard).length, k = kept_count(density, length);
    return 8 + 4 * k + 4 * std::min(k, length - k);
  };
  const std::size_t longest = part_of(values, grouping.node_size, 0).length, k = kept_count(density, longest);
  const std::size_t bound = 8 + 4 * k + 4 * std::min(k, longest / 2);
  Bytes bytes{.sums = m * (n - 1) * 4 * values, .forwards = m * (bound + 8) + 24 < values / n * 4};
  for (int shard = 0; shard < grouping.node_size; ++shard) {
    bytes.between += m * (m - 1) * (message(shard) + 24);
    if (bytes.forwards) bytes.last += m * (n - 1) * (m * (message(shard) + 8) + 24);
  }
  if (!bytes.forwards) bytes.last = bytes.sums;
  return bytes;
}

}  // namespace

TEST_CASE("hitopk loses nothing and gives everybody the same, on nodes of any size and on either engine") {
  for (const Grouping& grouping : groupings) {
    for (const char* selector : {"name: mstopk, density: 0.03", "name: topk, density: 0.3"}) {
      for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
        GlobalOptions options = integers(grouping.ranks());
        options.engine = engine;
        check_laws(hitopk(grouping.node_size, selector), options);
      }
    }
  }
}

TEST_CASE("with density 1 hitopk is the dense sum, and on one rank the identity") {
  for (const Grouping& grouping : groupings) {
    const GlobalOutcome dense = run_global("exchange: {name: allreduce}\n", integers(grouping.ranks()));
    for (const char* selector : {"name: mstopk, density: 1.0", "name: dense"}) {
      const GlobalOutcome all = run_global(hitopk(grouping.node_size, selector), integers(grouping.ranks()));
      CHECK(all.came_out == dense.came_out);
      if (grouping.ranks() == 1) CHECK(all.came_out == all.put_in);
    }
  }
}

TEST_CASE("with one rank a node hitopk is topk, bit by bit") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const std::string topk = "exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.1}}\n";
    const GlobalOutcome expected = run_global(topk, integers(ranks));
    const GlobalOutcome outcome = run_global(hitopk(1, "name: topk, density: 0.1"), integers(ranks));
    CHECK(outcome.came_out == expected.came_out);
    CHECK(outcome.residual == expected.residual);
  }
}

// The k/n largest of a shard of the node's sum; the residual is the shard's, and the others' is nothing.
TEST_CASE("a rank of a node of two keeps what it does not send of its half of the node's sum") {
  const Layout layout = reference::small_layout();
  const GlobalOutcome outcome = run_global(hitopk(2, "name: topk, density: 0.1"), integers(2, 1));
  for (int rank = 0; rank < 2; ++rank) {
    const Part part = part_of(layout.size(), 2, rank);
    std::size_t sent = 0;
    float least_sent = 1e9F, most_kept = 0.0F;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      const float sum = outcome.put_in[0][0][i] + outcome.put_in[1][0][i];
      const float kept = outcome.residual[static_cast<std::size_t>(rank)][i];
      if (i < part.begin || i >= part.begin + part.length) {
        CHECK(kept == 0.0F);
        continue;
      }
      const float applied = 2 * outcome.came_out[0][0][i];
      CHECK((applied == 0.0F ? kept : applied) == sum);
      if (applied != 0.0F) ++sent, least_sent = std::min(least_sent, std::abs(sum));
      most_kept = std::max(most_kept, std::abs(kept));
    }
    CHECK(sent == kept_count(0.1, part.length));
    CHECK(least_sent >= most_kept);
  }
}

TEST_CASE("machines may hold any ranks, as long as they hold equally many") {
  GlobalOptions options = integers(6);
  const std::string yaml = hitopk(0, "name: topk, density: 0.02");
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}, {0, 1, 1, 0, 2, 2}}) {
    options.nodes = nodes;
    check_laws(yaml, options);
  }
  options.nodes = {0, 0, 0, 1, 1, 1};
  CHECK(run_global(yaml, options).came_out == run_global(hitopk(3, "name: topk, density: 0.02"), options).came_out);
  options.nodes = {0, 0, 1, 1, 1, 1};
  CHECK_THROWS_WITH_AS(run_global(yaml, options), doctest::Contains("2, 4"), ConfigError);
  CHECK_THROWS_WITH_AS(run_global(hitopk(4, "name: topk"), options), doctest::Contains("nodes of 4 ranks"),
                       ConfigError);
  CHECK_THROWS_AS(
      GlobalPlan(hitopk(4, "name: topk"))->worst_case_bytes(reference::small_layout(), complete_topology(6)),
      ConfigError);
}

TEST_CASE("more ranks a node than values leaves some ranks without a shard") {
  Layout layout;
  layout.append("a", {2});
  layout.append("none", {0});
  layout.append("b", {3});
  for (const Grouping& grouping : {Grouping{1, 8}, Grouping{2, 6}, Grouping{1, 12}}) {
    for (const double density : {0.3, 1.0}) {
      const GlobalOutcome outcome =
          run_global(hitopk(grouping.node_size, "name: mstopk, density: " + std::to_string(density)),
                     integers(grouping.ranks()), layout);
      CHECK(mass_is_kept(outcome));
      CHECK(all_ranks_agree(outcome));
    }
  }
}

TEST_CASE("bytes of hitopk are those of its cost comment, and never more than its worst case") {
  const Layout layout = reference::small_layout();
  bool some_forward = false, some_do_not = false;
  for (const Grouping& grouping : groupings) {
    for (const double density : {0.01, 0.05, 0.3, 1.0}) {
      CAPTURE(grouping.nodes);
      CAPTURE(grouping.node_size);
      CAPTURE(density);
      const std::string selector = "name: topk, density: " + std::to_string(density);
      const GlobalOutcome outcome =
          run_global(hitopk(grouping.node_size, selector),
                     {.ranks = grouping.ranks(), .iterations = 1, .gradient = positive_gradient});
      const Bytes expected = expected_bytes(grouping, density, layout.size());
      std::uint64_t bytes = 0;
      for (const Traffic& traffic : outcome.traffic) bytes += traffic.bytes;
      CHECK(bytes == expected.total());
      if (grouping.node_size > 1) (expected.forwards ? some_forward : some_do_not) = true;
      const Topology topology = complete_topology(grouping.ranks());
      const std::size_t worst = GlobalPlan(hitopk(grouping.node_size, selector))->worst_case_bytes(layout, topology);
      CHECK(bytes <= worst);
      CHECK(worst <= GlobalPlan(hitopk(0, selector))->worst_case_bytes(layout, topology));
    }
  }
  CHECK(some_forward);
  CHECK(some_do_not);
}

TEST_CASE("clipping in hitopk shortens every rank's gradient before it is added") {
  const std::string feedback = ", feedback: {clip_norm: 3.0}}\nsparsify: {selector: {name: topk, density: 1.0}}\n";
  const GlobalOutcome outcome = run_global("exchange: {name: hitopk, node_size: 2" + feedback, integers(2));
  CHECK(outcome.came_out == run_global("exchange: {name: topk" + feedback, integers(2)).came_out);
  CHECK(outcome.came_out != run_global("exchange: {name: allreduce}\n", integers(2)).came_out);
}

TEST_CASE("hitopk refuses what it cannot do") {
  CHECK_THROWS_WITH_AS(GlobalPlan(hitopk(2, "name: mstopk, dense_below: 3")), doctest::Contains("dense_below"),
                       ConfigError);
}

TEST_CASE("messages that are passed on come out as they went in, and a cut pack is an error") {
  std::vector<OwnedMessage> messages(3);
  messages[0].bytes.resize(5, std::byte{7}), messages[0].payload_bytes = 3, messages[0].index_bytes = 1;
  messages[2].bytes.resize(2, std::byte{9}), messages[2].payload_bytes = 2;
  const OwnedMessage packed = pack(messages);
  CHECK(packed.bytes.size() == 7 + 3 * packed_header_bytes);
  CHECK(packed.payload_bytes == 5);
  CHECK(packed.index_bytes == 1);
  const auto unpacked = unpack(packed.bytes, 3, 1);
  REQUIRE(unpacked.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(unpacked[i].bytes == messages[i].bytes);
  CHECK(unpack({}, 0, 1).empty());
  CHECK_THROWS_AS(unpack(packed.bytes, 2, 1), CommunicationError);
  for (std::size_t length = 0; length < packed.bytes.size(); ++length)
    CHECK_THROWS_AS(unpack(std::span(packed.bytes).first(length), 3, 1), CommunicationError);
}

}  // namespace hitopk_test

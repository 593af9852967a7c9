// Identities between exchanges, bit for bit, and what the ledger counts of them.
#include <doctest/doctest.h>

#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::identities_test {
namespace {

using namespace test;

const std::vector<int> rank_counts{1, 2, 3, 4, 5, 8};
constexpr const char* adaptive = "trigger: {name: adaptive, horizon: 1.7, warmup_iterations: 3}\n";
constexpr const char* every_bit = "trigger: {name: constant, threshold: 0, warmup_iterations: 0}\n";

JobOutcome train(const std::string& yaml, int ranks, Ranks run = Ranks::one_thread) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 3);
  return train_locally(yaml, layout, problem.initial(), problem, {.ranks = ranks, .run = run});
}

void check_same(const JobOutcome& a, const JobOutcome& b) {
  CHECK(a.hashes() == b.hashes());
  for (std::size_t r = 0; r < a.ranks.size(); ++r) CHECK(a.ranks[r].x == b.ranks[r].x);
  CHECK(a.totals().messages == b.totals().messages);
  CHECK(a.totals().payload_bytes == b.totals().payload_bytes);
}

TEST_CASE("eventgrad with threshold 0 and stale mixing is dpsgd") {
  for (const auto& graph : graph_choices()) {
    for (const int ranks : rank_counts) {
      CAPTURE(graph.yaml);
      CAPTURE(ranks);
      check_same(train(graph.yaml + eventgrad("{name: stale}") + every_bit, ranks), train(graph.yaml + dpsgd, ranks));
    }
  }
}

TEST_CASE("with strategy diffusion, too") {
  const std::string diffusion = "exchange: {name: dpsgd, strategy: diffusion}\n";
  for (const int ranks : rank_counts) {
    CAPTURE(ranks);
    const JobOutcome averaged = train(ring + diffusion, ranks, Ranks::threads);
    check_same(
        train(ring + eventgrad("{name: stale}", "lockstep, strategy: diffusion") + every_bit, ranks, Ranks::threads),
        averaged);
    CHECK((averaged.hashes() == train(std::string(ring) + dpsgd, ranks).hashes()) == (ranks == 1));
  }
}

TEST_CASE("every policy in its warm-up is dpsgd") {
  const JobOutcome baseline = train(std::string(ring) + dpsgd, 4);
  for (const char* name :
       {"always", "constant", "geometric", "periodic", "adaptive", "adaptive_compounding", "sparq", "etg", "random"}) {
    CAPTURE(name);
    const std::string trigger = "trigger: {name: " + std::string(name) + ", warmup_iterations: 1000}\n";
    check_same(train(ring + eventgrad("{name: stale}") + trigger, 4), baseline);
  }
}

TEST_CASE("periodic with period 1 and stale mixing is dpsgd") {
  const std::string trigger = "trigger: {name: periodic, period: 1, warmup_iterations: 0}\n";
  for (const int ranks : rank_counts) {
    CAPTURE(ranks);
    check_same(train(ring + eventgrad("{name: stale}") + trigger, ranks), train(std::string(ring) + dpsgd, ranks));
  }
}

TEST_CASE("sparse copies of density 1 are whole segments") {
  const std::string everything = "sparsify: {selector: {name: topk, density: 1.0}}\n";
  for (const auto& mixing : mixing_choices()) {
    for (const int ranks : rank_counts) {
      CAPTURE(mixing.yaml);
      CAPTURE(ranks);
      const std::string whole = ring + eventgrad(mixing.yaml) + adaptive;
      check_same(train(whole + everything, ranks), train(whole, ranks));
    }
  }
}

TEST_CASE("two runs, and runs on any kind of thread, are one") {
  for (const auto& mixing : mixing_choices()) {
    for (const auto& sparsify : sparsify_choices()) {
      const std::string yaml = ring + eventgrad(mixing.yaml) + adaptive + sparsify.yaml;
      CAPTURE(yaml);
      const JobOutcome first = train(yaml, 5);
      check_same(train(yaml, 5, Ranks::threads), first);
      check_same(train(yaml, 5, Ranks::threads_with_communication_threads), first);
      check_same(train(yaml, 5, Ranks::threads_with_communication_threads), first);
    }
  }
}

TEST_CASE("other seeds give other replicas") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic a(layout, 3, 1);
  const reference::Quadratic b(layout, 3, 2);
  const std::string yaml = std::string(ring) + dpsgd;
  CHECK(train_locally(yaml, layout, a.initial(), a, {.ranks = 3}).hashes() !=
        train_locally(yaml, layout, b.initial(), b, {.ranks = 3}).hashes());
}

TEST_CASE("one rank is plain SGD and sends nothing") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  std::vector<float> x = problem.initial();
  std::vector<float> g(x.size());
  for (Iteration k = 0; k < 60; ++k) {
    problem.gradient(0, k, x, g);
    for (std::size_t e = 0; e < x.size(); ++e) x[e] -= 0.1F * g[e];
  }
  std::vector<std::string> exchanges{dpsgd};
  for (const auto& mixing : mixing_choices()) exchanges.push_back(eventgrad(mixing.yaml) + adaptive);
  for (const std::string& exchange : exchanges) {
    CAPTURE(exchange);
    const JobOutcome alone = train(ring + exchange, 1);
    CHECK(alone.ranks[0].x == x);
    CHECK(alone.totals().messages == 0);
    CHECK(alone.totals().bytes() == 0);
  }
}

TEST_CASE("dpsgd sends every message that is possible, 4 bytes a float") {
  const Layout layout = reference::small_layout();
  for (const auto& graph : graph_choices()) {
    for (const int ranks : rank_counts) {
      CAPTURE(graph.yaml);
      CAPTURE(ranks);
      const JobOutcome job = train(graph.yaml + dpsgd, ranks);
      const auto sends = static_cast<std::uint64_t>(job.directed_edges * 60);
      const LedgerTotals totals = job.totals();
      CHECK(totals.messages == sends * layout.count());
      CHECK(totals.payload_bytes == sends * 4 * layout.size());
      CHECK(totals.packets == sends);
      CHECK(totals.index_bytes == 0);
      CHECK(totals.deferred == 0);
    }
  }
}

/// Per segment of n floats: what one message of it carries.
struct Carried {
  std::uint64_t payload_bytes, index_bytes;
};

void check_ledger(const std::string& yaml, int ranks, const std::function<Carried(std::size_t)>& carried) {
  CAPTURE(yaml);
  const Layout layout = reference::small_layout();
  const JobOutcome job = train(yaml, ranks);
  const Topology topology = Plan(yaml).topology(ranks);
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    const auto degree = topology.neighbourhood(static_cast<int>(r)).neighbours.size();
    const RankOutcome& rank = job.ranks[r];
    std::uint64_t messages = 0;
    std::uint64_t payload = 0;
    std::uint64_t index = 0;
    for (std::size_t s = 0; s < layout.count(); ++s) {
      std::uint64_t fired = 0;
      for (const auto& events : rank.events) fired += events[s] ? 1 : 0;
      CHECK(rank.segment_events[s] == fired);
      CHECK(rank.segment_messages[s] == fired * degree);
      const Carried one = carried(layout[static_cast<SegmentId>(s)].length);
      CHECK(rank.segment_payload_bytes[s] == fired * degree * one.payload_bytes);
      messages += fired * degree;
      payload += fired * degree * one.payload_bytes;
      index += fired * degree * one.index_bytes;
    }
    CHECK(rank.totals.messages == messages);
    CHECK(rank.totals.payload_bytes == payload);
    CHECK(rank.totals.index_bytes == index);
    CHECK(rank.totals.packets == degree * 60);  // lockstep: an empty one where nothing fired
  }
}

TEST_CASE("messages are events times neighbours, bytes are 4 a float") {
  for (const auto& graph : graph_choices()) {
    for (const auto& trigger : trigger_choices()) {
      check_ledger(graph.yaml + eventgrad("{name: stale}") + trigger.yaml, 5, [](std::size_t n) {
        return Carried{4 * n, 0};
      });
    }
  }
}

TEST_CASE("sparse messages carry max(1, round(density n)) values and as many positions") {
  const auto carried = [](std::size_t n) -> Carried {
    const std::size_t kept = n == 1 || n == 7 ? 1 : n == 64 ? 6 : 30;
    return {4 * kept, n == 1 ? 0 : 4 * kept};  // the one value of a scalar needs no position
  };
  for (const auto& trigger : trigger_choices()) {
    check_ledger(ring + eventgrad("{name: stale}") + trigger.yaml + sparsify_choices()[1].yaml, 4, carried);
  }
}

}  // namespace
}  // namespace hearsay::identities_test

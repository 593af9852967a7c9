// Push-sum without waiting: nothing of numerators and weights is lost, whatever the delays and speeds are.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/neighbour/directed.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "topology/steady_weights.hpp"

namespace hearsay::push_sum_asynchronous_test {
namespace {

using namespace test;
using std::chrono::microseconds;

std::string push_sum(std::size_t in_flight) {
  return "exchange: {name: push_sum, schedule: asynchronous, in_flight: " + std::to_string(in_flight) + "}\n";
}
std::string directed(const TextFile& arcs) {
  return "topology: {graph: {name: edge_list, directed: true, path: " + arcs.name() + "}, weights: {name: uniform}}\n";
}

/// What a rank has when all is quiet, and what it added itself.
struct Mass {
  std::vector<float> n, z;
  std::vector<double> added;
};

struct Walk {
  EngineKind engine = EngineKind::thread_engine;
  std::size_t in_flight = 1;
  Iteration iterations = 60;
  bool stops = false;  ///< rank 1 does, for a second
};
constexpr float unit = 4096.0F;  // the last value of every rank at first: its numerator tells the weight

std::vector<Mass> walk(const std::string& topology, int ranks, const Walk& how) {
  const Plan plan(topology + push_sum(how.in_flight));
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), unit);
  const Topology graph = plan.topology(ranks);
  const LocalJob job{
      .topology = graph, .layout = layout, .initial = initial, .plan = plan.exchange(), .engine = how.engine};
  std::vector<Mass> all(static_cast<std::size_t>(ranks));
  run_local_ranks(job, [&](LocalRank& rank) {
    Mass& mass = all[static_cast<std::size_t>(rank.rank())];
    Random random(stream_seed(5, "walk", static_cast<std::uint64_t>(rank.rank())));
    mass.added.resize(layout.size());
    const auto x = rank.replica.values.span();
    const auto step = [&](std::size_t e, float to) {
      mass.added[e] += double{to} - x[e];
      x[e] = to;
    };
    for (std::size_t e = 0; e + 1 < x.size(); ++e) step(e, static_cast<float>(random.below(255)) - 127.0F);
    for (Iteration k = 0; k < how.iterations; ++k) {
      rank.member.start(k);
      std::this_thread::sleep_for(microseconds(random.below(rank.rank() == 0 ? 400 : 100)));
      if (how.stops && rank.rank() == 1 && k == 5) std::this_thread::sleep_for(std::chrono::seconds(1));
      rank.member.finish(k);
      for (std::size_t e = 0; e + 1 < x.size(); ++e)
        step(e, std::round(x[e]) + static_cast<float>(random.below(3)) - 1.0F);
      rank.member.stepped(k);
    }
    rank.member.settle();
    mass.z.assign(x.begin(), x.end());
    rank.member.finish(how.iterations);
    mass.n.assign(x.begin(), x.end());
    rank.barrier();
  });
  return all;
}

/// What the ranks have beyond what they had at first and added themselves.
std::vector<double> surplus(const std::vector<Mass>& all) {
  std::vector<double> sum(all[0].n.size());
  for (const Mass& mass : all)
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += mass.n[e] - unit - mass.added[e];
  return sum;
}

constexpr EngineKind engines[] = {EngineKind::inline_engine, EngineKind::thread_engine};

// One or three targets: shares are 1/2 and 1/4, and what is whole before a send is exact after it.
const char* const four_ranks = "0 1\n1 2\n2 3\n3 0\n3 1\n3 2\n";
const char* const two_ranks = "0 1\n1 0\n";
const char* const eight_ranks = "0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n6 7\n7 0\n7 2\n7 4\n";

struct Circle {
  int ranks;
  const char* arcs;
};
constexpr Circle circles[] = {{2, two_ranks}, {4, four_ranks}, {8, eight_ranks}};

}  // namespace

TEST_CASE("numerators keep their sum, exactly, at any speeds and with any delays") {
  for (const auto& [ranks, arcs] : circles) {
    const TextFile file(arcs);
    for (const EngineKind engine : engines) {
      for (const std::size_t in_flight : {1U, 2U, 8U}) {
        CAPTURE(ranks);
        CAPTURE(in_flight);
        std::vector<double> sum = surplus(walk(directed(file), ranks, {.engine = engine, .in_flight = in_flight}));
        sum.pop_back();  // not whole any more
        CHECK(sum == std::vector<double>(sum.size(), 0.0));
      }
    }
  }
}

TEST_CASE("numerators keep it where a rank stops for a second") {
  const TextFile file(four_ranks);
  for (const std::size_t in_flight : {1U, 2U, 8U}) {
    CAPTURE(in_flight);
    std::vector<double> sum = surplus(walk(directed(file), 4, {.in_flight = in_flight, .stops = true}));
    sum.pop_back();
    CHECK(sum == std::vector<double>(sum.size(), 0.0));
  }
}

TEST_CASE("weights keep their sum, exactly while they are short enough for a float") {
  for (const auto& [ranks, arcs] : circles) {
    const TextFile file(arcs);
    CAPTURE(ranks);
    CHECK(surplus(walk(directed(file), ranks, {.iterations = 16 / ranks})).back() == 0.0);
    CHECK(std::abs(surplus(walk(directed(file), ranks, {.iterations = 200})).back()) < 1e-3 * unit);
  }
}

// How long it takes is up to the machine; that it happens is not.
TEST_CASE("without gradients all models become the mean of what they were, also behind a slow rank") {
  constexpr int ranks = 8;
  constexpr Iteration most = 4000, between_looks = 20;
  for (const std::string graph : {"exponential", "directed_exponential", "one_peer_exponential"}) {
    for (const EngineKind engine : engines) {
      CAPTURE(graph);
      const Plan plan("topology: {graph: {name: " + graph + "}, weights: {name: uniform}}\n" + push_sum(1));
      const Topology topology = plan.topology(ranks);
      const Layout layout = reference::small_layout();
      const std::vector<float> initial(layout.size(), 0.0F);
      const LocalJob job{
          .topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange(), .engine = engine};
      std::vector<float> furthest(ranks);
      run_local_ranks(job, [&](LocalRank& rank) {
        const auto x = rank.replica.values.span();
        std::ranges::fill(x, static_cast<float>(100 * rank.rank()));
        float& own = furthest[static_cast<std::size_t>(rank.rank())];
        for (Iteration k = 0; k < most; ++k) {
          rank.member.start(k);
          if (rank.rank() == 0) std::this_thread::sleep_for(microseconds(300));
          rank.member.finish(k);
          rank.member.stepped(k);
          if (k % between_looks != 0) continue;
          own = 0.0F;
          for (const float z : x) own = std::max(own, std::abs(z - 350.0F));
          rank.barrier();
          const bool all = std::ranges::max(furthest) < 0.1F;
          rank.barrier();
          if (all) break;
        }
      });
      CHECK(std::ranges::max(furthest) < 0.1F);
    }
  }
}

// Every rank pulls towards ±1 by g = z_k − b. What has come makes z' of z_k, and the step z'' = z' − η' g of it, with
// η' ≤ η / π ≤ 1 however little weight a rank has. So z'' lies between z' and b, but for η' (z' − z_k): the gradient
// was taken before the mixing.
TEST_CASE("however long a rank pauses, no step is longer than in lockstep, and no model runs away") {
  constexpr Iteration before = 10, after = 400;
  const TextFile four(four_ranks);
  struct Case {
    std::string topology;
    int ranks;
    float rate;
  };
  const std::string ring = "topology: {graph: {name: directed_ring}, weights: {name: uniform}}\n";
  const std::string exponential = "topology: {graph: {name: directed_exponential}, weights: {name: uniform}}\n";
  for (const Case& one : {Case{ring, 2, 0.5F}, Case{ring, 3, 0.5F}, Case{ring, 4, 0.5F}, Case{exponential, 3, 0.5F},
                          Case{exponential, 4, 0.5F}, Case{directed(four), 4, 0.125F}}) {
    for (const Iteration pause : {Iteration{5}, Iteration{60}, Iteration{2000}}) {
      CAPTURE(one.topology);
      CAPTURE(one.ranks);
      CAPTURE(pause);
      const Plan plan(one.topology + push_sum(1));
      const Topology graph = plan.topology(one.ranks);
      const Layout layout = reference::small_layout();
      const std::vector<float> initial(layout.size(), 0.0F);
      const LocalJob job{.topology = graph, .layout = layout, .initial = initial, .plan = plan.exchange()};
      std::vector<std::atomic<Iteration>> at(static_cast<std::size_t>(one.ranks));
      const std::vector<double> steady = steady_weights(graph);
      std::atomic<float> furthest{0.0F}, longest{0.0F};  // longest: a step, as a part of what it may be
      run_local_ranks(job, [&](LocalRank& rank) {
        const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
        const auto me = static_cast<std::size_t>(rank.rank());
        const auto others_have = [&](Iteration k) {
          return std::ranges::all_of(at, [&](const auto& other) { return &other == &at[me] || other >= k; });
        };
        // The last rank pauses while the others go on.
        const bool pauses = rank.rank() + 1 == one.ranks;
        const Iteration most = before + after + (pauses ? 0 : pause);
        for (Iteration k = 0; k < most; ++k) {
          if (pauses && k == before)
            while (!others_have(before + pause)) std::this_thread::yield();
          rank.member.start(k);
          for (std::size_t e = 0; e < x.size(); ++e) g[e] = x[e] - (rank.rank() % 2 == 0 ? 1.0F : -1.0F);
          const std::vector<float> gradient(g.begin(), g.end());
          rank.member.finish(k);
          const std::vector<float> mixed(x.begin(), x.end());  // numerators, as the next
          for (std::size_t e = 0; e < x.size(); ++e) x[e] -= one.rate * g[e];
          const std::vector<float> moved(x.begin(), x.end());
          rank.member.stepped(k);
          constexpr float tell_weights = 0.01F, rounding = 1e-5F;
          for (std::size_t e = 0; e < x.size(); ++e) {
            if (std::abs(x[e]) < tell_weights) continue;
            const float step = std::abs(moved[e] - mixed[e]) * x[e] / moved[e];  // of z
            const float allowed = one.rate / static_cast<float>(steady[me]) * std::abs(gradient[e]) + rounding;
            const float part = std::isfinite(step) ? step / allowed : INFINITY;
            for (float seen = longest; part > seen && !longest.compare_exchange_weak(seen, part);) {
            }
          }
          float own = 0.0F;
          for (const float z : x) own = std::max(own, std::isfinite(z) ? std::abs(z) : INFINITY);
          for (float seen = furthest; own > seen && !furthest.compare_exchange_weak(seen, own);) {
          }
          at[me] = k + 1;
        }
        rank.barrier();
      });
      CHECK(longest.load() < 1.001F);
      CHECK(longest.load() > 0.5F);
      CHECK(furthest.load() < 1.0F + 2.0F * one.rate);  // the distance between minima, stepped at once
    }
  }
}

TEST_CASE("one rank alone is where its own steps take it") {
  const auto all = walk("topology: {graph: {name: ring}, weights: {name: uniform}}\n", 1, {});
  for (std::size_t e = 0; e < all[0].z.size(); ++e) CHECK(double{all[0].z[e]} == unit + all[0].added[e]);
}

TEST_CASE("a packet of another model is refused, with both ranks and the remedy") {
  const Plan plan("topology: {graph: {name: ring}, weights: {name: uniform}}\n" + push_sum(1));
  const Topology graph = plan.topology(2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 1.0F);
  const LocalJob job{.topology = graph, .layout = layout, .initial = initial, .plan = plan.exchange()};
  std::string said;
  run_local_ranks(job, [&](LocalRank& rank) {
    if (rank.rank() == 1) {
      auto packet = std::make_shared<OutgoingPacket>();
      packet->bytes.resize(sizeof(PacketHeader) + 8);
      seal_packet(packet->bytes, 1, 0, 3);
      rank.mailbox.post(0, packet);
      rank.member.communication().flush();
    }
    rank.barrier();
    if (rank.rank() == 0) {
      rank.mailbox.progress();
      try {
        rank.member.finish(0);
      } catch (const CommunicationError& error) {
        said = error.what();
      }
    }
    rank.barrier();
  });
  CHECK(said.find("from rank 1 to rank 0 does not fit") != std::string::npos);
  CHECK(said.find("different models") != std::string::npos);
}

}  // namespace hearsay::push_sum_asynchronous_test

// Asynchronous ranks never wait, and a sender always knows exactly what its neighbours hold of it.
#include <algorithm>
#include <chrono>
#include <cmath>

#include <doctest/doctest.h>

#include "runtime/exchange/neighbour/link/link.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::asynchronous_test {
namespace {

using namespace test;
using std::chrono::microseconds;

/// What a link is given, as the section `sparsify:` has it.
Sparsifier sparsifier(const std::string& yaml) {
  Config section = Config::from_text(yaml);
  Sparsifier read = read_sparsifier(section, {});
  section.document().throw_if_invalid();
  return read;
}

std::size_t packet_bound(const Layout& layout, const std::string& yaml) {
  const Sparsifier used = sparsifier(yaml);
  std::size_t bytes = sizeof(PacketHeader);
  for (const Segment& s : layout.segments()) bytes += segment_bound(used, s.length);
  return bytes;
}

LinkOptions keep_copies(std::size_t in_flight = 1) {
  return {.schedule = Schedule::asynchronous, .keep_own_copies = true, .in_flight = in_flight};
}

/// Both ends' views of every edge when all is quiet, by (rank, edge).
struct Views {
  explicit Views(int ranks) : ours(static_cast<std::size_t>(ranks)), theirs(ours), x(ours.size()) {}
  std::vector<std::vector<std::vector<float>>> ours, theirs;
  std::vector<std::vector<float>> x;
  std::atomic<int> settled{0};
  std::atomic<std::uint64_t> deferred{0}, packets{0};
};

/// Sends what is owed to all neighbours and takes what they owe; then stores this rank's view.
void settle(LocalRank& rank, NeighbourLink& link, Iteration k, Views& views) {
  const std::vector<std::uint8_t> nothing(rank.replica.layout.count());
  int quiet = 0;  // rounds without anything owed; more than one, to see that nothing is sent twice
  while (views.settled < rank.topology.ranks()) {
    const std::uint64_t before = rank.ledger.totals().deferred;
    link.send(k, nothing);
    link.receive(k);
    if (rank.ledger.totals().deferred == before && ++quiet == 5) ++views.settled;
    ++k;
    std::this_thread::sleep_for(microseconds(20));
  }
  views.deferred += rank.ledger.totals().deferred;
  rank.member.leave();
  views.packets += rank.ledger.totals().packets;
  rank.barrier();
  rank.mailbox.progress();
  link.receive(k);
  const auto r = static_cast<std::size_t>(rank.rank());
  views.x[r].assign(rank.replica.values.span().begin(), rank.replica.values.span().end());
  for (const MixEdge& edge : link.edges()) {
    views.ours[r].emplace_back(edge.ours.begin(), edge.ours.end());
    views.theirs[r].emplace_back(edge.theirs.begin(), edge.theirs.end());
  }
}

std::size_t edge_to(const Topology& topology, int from, int to) {
  const auto list = topology.neighbourhood(from).neighbours;
  return static_cast<std::size_t>(std::ranges::find(list, to) - list.begin());
}

/// What i believes that j holds of i is what j holds of i.
void check_views_agree(const Topology& topology, const Views& views) {
  for (int i = 0; i < topology.ranks(); ++i) {
    for (const int j : topology.neighbourhood(i).neighbours) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(views.ours[static_cast<std::size_t>(i)][edge_to(topology, i, j)] ==
            views.theirs[static_cast<std::size_t>(j)][edge_to(topology, j, i)]);
    }
  }
}

Topology build(const std::string& yaml, int ranks) { return Plan(yaml + dpsgd).topology(ranks); }

void wander(Random& random, std::span<float> x) {
  for (float& v : x) v += static_cast<float>(random.uniform(-1.0, 1.0));
}

/// Who drives communication, and how many packets of an edge may be under way.
struct Way {
  EngineKind engine;
  std::size_t in_flight;
};
constexpr Way ways[] = {{EngineKind::inline_engine, 1}, {EngineKind::inline_engine, 2}, {EngineKind::inline_engine, 8},
                        {EngineKind::thread_engine, 1}, {EngineKind::thread_engine, 2}, {EngineKind::thread_engine, 8}};

void run_links(const Topology& topology, const std::string& sparsify, const Way& way, Views& views,
               const std::function<void(LocalRank&, NeighbourLink&)>& work) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 1.0F);
  const IdlePlan plan(packet_bound(layout, sparsify), way.in_flight);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan, .engine = way.engine};
  run_local_ranks(job, [&](LocalRank& rank) {
    NeighbourLink link(rank.context(), keep_copies(way.in_flight), sparsifier(sparsify));
    work(rank, link);
    settle(rank, link, 1000, views);
  });
}

TEST_CASE("a neighbour that stops receiving holds nobody up and misses nothing") {
  const Topology topology = build(ring, 2);
  for (const std::string sparsify : {whole, a_tenth}) {
    for (const Way& way : ways) {
      CAPTURE(sparsify);
      CAPTURE(way.in_flight);
      Views views(2);
      run_links(topology, sparsify, way, views, [&](LocalRank& rank, NeighbourLink& link) {
        if (rank.rank() == 0) {  // rank 1 stands at the barrier all this time
          Random random(9);
          const std::vector<std::uint8_t> all(rank.replica.layout.count(), 1);
          for (Iteration k = 0; k < 50; ++k) {
            wander(random, rank.replica.values.span());
            link.send(k, all);
            link.receive(k);
          }
        }
        rank.barrier();
      });
      CHECK(views.deferred > 0);
      CHECK(views.packets == way.in_flight + 1);  // the last one has all that was owed
      check_views_agree(topology, views);
      if (sparsify == whole)
        CHECK(views.theirs[1][0] == views.x[0]);  // what was deferred went out with its last values
      CHECK(views.theirs[0][0] == std::vector<float>(views.x[0].size(), 1.0F));
    }
  }
}

TEST_CASE("copies and beliefs agree after any delays and any events") {
  for (const std::string& graph :
       {std::string(ring), std::string("topology: {graph: {name: complete}, weights: {name: uniform}}\n")}) {
    const Topology topology = build(graph, 4);
    for (const std::string& sparsify : every_kind_of_body()) {
      for (const Way& way : ways) {
        CAPTURE(graph);
        CAPTURE(sparsify);
        CAPTURE(way.in_flight);
        Views views(4);
        run_links(topology, sparsify, way, views, [&](LocalRank& rank, NeighbourLink& link) {
          Random random(stream_seed(17, "delays", static_cast<std::uint64_t>(rank.rank())));
          std::vector<std::uint8_t> fired(rank.replica.layout.count());
          for (Iteration k = 0; k < 60; ++k) {
            wander(random, rank.replica.values.span());
            for (auto& f : fired) f = random.uniform() < 0.4 ? 1 : 0;
            link.send(k, fired);
            if (rank.rank() % 2 == 0) std::this_thread::sleep_for(microseconds(random.below(300)));
            link.receive(k);
          }
        });
        check_views_agree(topology, views);
      }
    }
  }
}

TEST_CASE("so they do where ranks stop for a second in the middle, one after the other") {
  const Topology topology = build(ring, 4);
  for (const std::size_t in_flight : {1U, 2U, 8U}) {
    CAPTURE(in_flight);
    Views views(4);
    run_links(topology, whole, {EngineKind::thread_engine, in_flight}, views,
              [&](LocalRank& rank, NeighbourLink& link) {
                Random random(stream_seed(18, "stops", static_cast<std::uint64_t>(rank.rank())));
                const std::vector<std::uint8_t> all(rank.replica.layout.count(), 1);
                for (Iteration k = 0; k < 900; ++k) {
                  wander(random, rank.replica.values.span());
                  link.send(k, all);
                  std::this_thread::sleep_for(k == 200 * rank.rank() + 20 ? std::chrono::seconds(1) : microseconds(20));
                  link.receive(k);
                }
              });
    CHECK(views.deferred > 0);
    check_views_agree(topology, views);
    for (int i = 0; i < 4; ++i)
      for (const int j : topology.neighbourhood(i).neighbours)
        CHECK(views.theirs[static_cast<std::size_t>(j)][edge_to(topology, j, i)] ==
              views.x[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a segment counts as moved until it has been mixed") {
  const Topology topology = build(ring, 2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 1.0F);
  const IdlePlan plan(packet_bound(layout, whole));
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
  LocalWorld world(job);
  const auto sender = world.make_rank(0);
  const auto receiver = world.make_rank(1);
  NeighbourLink from(sender->context(), keep_copies(), {});
  NeighbourLink to(receiver->context(), keep_copies(), {});
  const std::vector<std::uint8_t> third{0, 0, 1, 0};
  const std::vector<std::uint8_t> none(4);
  const auto moved = [](const NeighbourLink& link) {
    const auto flags = link.edges()[0].crossed;
    return std::vector<std::uint8_t>(flags.begin(), flags.end());
  };
  from.send(0, third);
  to.send(0, none);
  receiver->mailbox.progress();
  to.receive(0);
  for (NeighbourLink* link : {&from, &to}) {
    CHECK(moved(*link) == third);
    link->send(1, none);  // a local step: nobody has mixed
    CHECK(moved(*link) == third);
    link->mixed(link->every_segment());
    CHECK(moved(*link) == none);
  }
}

TEST_CASE("a stalled neighbour does not hold up an exchange") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 1.0F);
  const reference::Quadratic problem(layout, 2, 3);
  const std::string trigger = "trigger: {name: always}\n";
  const auto of = [](const std::string& exchange, std::size_t packets) { return std::pair(exchange, packets); };
  for (const auto& [exchange, in_flight] :
       {of("exchange: {name: dpsgd, schedule: asynchronous}\n", 1),
        of("exchange: {name: dpsgd, schedule: asynchronous, in_flight: 3}\n", 3),
        of("exchange: {name: quasi_global_momentum, momentum: 0.5, schedule: asynchronous, in_flight: 2}\n", 2),
        of(eventgrad("{name: arrival}", "asynchronous") + trigger, 1),
        of(eventgrad("{name: stale}", "asynchronous") + trigger, 1)}) {
    CAPTURE(exchange);
    const Plan plan(ring + exchange);
    const Topology topology = plan.topology(2);
    const LocalJob job{.topology = topology,
                       .layout = layout,
                       .initial = initial,
                       .plan = plan.exchange(),
                       .engine = EngineKind::thread_engine};
    LedgerTotals sender;
    run_local_ranks(job, [&](LocalRank& rank) {
      if (rank.rank() == 0) {
        RankTrainer trainer(rank.member, problem, {.learning_rate = 0.1});
        for (Iteration k = 0; k < 50; ++k) {
          trainer.start(k);
          trainer.finish(k);
        }
        sender = trainer.outcome().totals;
      }
      rank.barrier();
    });
    CHECK(sender.events == 50 * layout.count());
    CHECK(sender.packets == in_flight);
    CHECK(sender.messages == sender.packets * layout.count());
    CHECK(sender.deferred == (50 - sender.packets) * layout.count());
  }
}

/// The largest difference between any rank's value and rank 0's.
float disagreement(const std::vector<std::vector<float>>& x) {
  float largest = 0.0F;
  for (const auto& replica : x) {
    for (std::size_t e = 0; e < replica.size(); ++e) largest = std::max(largest, std::abs(replica[e] - x[0][e]));
  }
  return largest;
}

TEST_CASE("asynchronous ranks with no gradients come to agree") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const std::string exchanges[] = {
      "exchange: {name: dpsgd, schedule: asynchronous}\n",
      eventgrad("{name: stale}", "asynchronous") + "trigger: {name: constant, threshold: 0}\n"};
  for (const std::string& exchange : exchanges) {
    for (const auto engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
      CAPTURE(exchange);
      const Plan plan(ring + exchange);
      const Topology topology = plan.topology(5);
      const LocalJob job{
          .topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange(), .engine = engine};
      std::vector<std::vector<float>> x(5);
      run_local_ranks(job, [&](LocalRank& rank) {
        Random random(stream_seed(23, "delays", static_cast<std::uint64_t>(rank.rank())));
        for (float& v : rank.replica.values.span()) v = static_cast<float>(rank.rank() + 1);
        // How many iterations it takes is up to the machine: a starved rank hears little in one. That it happens is
        // not.
        bool agreed = false;
        for (Iteration k = 0; k < 20000 && !agreed; ++k) {
          rank.member.start(k);
          std::this_thread::sleep_for(microseconds(random.below(300)));
          rank.member.finish(k);
          if (k % 10 != 9) continue;
          const auto values = rank.replica.values.span();
          x[static_cast<std::size_t>(rank.rank())].assign(values.begin(), values.end());
          rank.barrier();
          agreed = disagreement(x) <= 1e-4F;
          rank.barrier();
        }
      });
      CHECK(disagreement(x) <= 1e-4F);
    }
  }
}

}  // namespace
}  // namespace hearsay::asynchronous_test

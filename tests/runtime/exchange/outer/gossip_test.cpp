// The laws of outer steps along a graph: gasloc and gossip_outer.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::gossip_test {
namespace {

using namespace test;

std::string gasloc(const std::string& keys) { return "exchange: {name: gasloc, " + keys + "}\n"; }
std::string gossip(const std::string& keys) { return "exchange: {name: gossip_outer, " + keys + "}\n"; }
constexpr const char* plain_outer = "outer: {learning_rate: 1, momentum: 0}";
constexpr const char* everything = "trigger: {name: always}\n";
/// Some segments of some ranks.
constexpr const char* some = "trigger: {name: constant, threshold: 6, measure: change, warmup_iterations: 1}\n";

void check_same(const JobOutcome& a, const JobOutcome& b, double allowed) {
  double worst = 0.0;
  for (std::size_t r = 0; r < a.ranks.size(); ++r)
    for (std::size_t e = 0; e < a.ranks[r].x.size(); ++e)
      worst = std::max(worst, std::abs(static_cast<double>(a.ranks[r].x[e]) - b.ranks[r].x[e]));
  CHECK(worst <= allowed);
}

JobOutcome train(const std::string& yaml, int ranks, Iteration iterations = 60) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 3);
  return train_locally(yaml, layout, problem.initial(), problem,
                       {.ranks = ranks, .iterations = iterations, .run = Ranks::threads});
}

TEST_CASE("overlapped rounds of one step with a plain outer step are dpsgd and eventgrad, to rounding") {
  for (const auto& graph : graph_choices()) {
    for (const int ranks : {1, 2, 5}) {
      CAPTURE(graph.yaml);
      CAPTURE(ranks);
      const std::string keys = std::string("local_steps: 1, overlap: true, ") + plain_outer;
      check_same(train(graph.yaml + gasloc(keys), ranks), train(graph.yaml + dpsgd, ranks), 1e-5);
      for (const char* mixing : {"{name: arrival}", "{name: difference, gamma: 0.3}"})
        check_same(train(graph.yaml + gossip(keys + ", mixing: " + mixing) + everything, ranks),
                   train(graph.yaml + eventgrad(mixing) + everything, ranks), 1e-5);
    }
  }
}

TEST_CASE("with every trigger firing gossip_outer is gasloc, if momentum goes by the same") {
  for (const std::string velocity : {"own", "halfway", "differences"}) {
    const std::string keys = "local_steps: 4, outer: {velocity: " + velocity + "}";
    for (const auto& graph : graph_choices())
      check_same(train(graph.yaml + gossip(keys + ", mixing: {name: difference, gamma: 1}") + everything, 5),
                 train(graph.yaml + gasloc(keys), 5), 1e-5);
  }
}

TEST_CASE("on a complete graph, with momentum of differences, gasloc is diloco") {
  const std::string keys = "local_steps: 4, outer: {learning_rate: 0.7, momentum: 0.9";
  const std::string complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";
  for (const int ranks : {1, 2, 5})
    check_same(train(complete + gasloc(keys + ", velocity: differences}"), ranks),
               train("exchange: {name: diloco, " + keys + "}}\n", ranks), 1e-5);
}

// Δ is of outer differences: without them there would be no step to count in, and nothing would travel.
TEST_CASE("single values of outer steps are events, and the mean goes where it goes with all of them") {
  const std::string rounds = std::string("local_steps: 4, mixing: {name: difference, gamma: 1}, ") + plain_outer;
  for (const std::string more : {"", ", correction: {name: drift, strength: 0.3}", ", copies: edge"}) {
    CAPTURE(more);
    const std::string yaml =
        ring + gossip(rounds + more) + "trigger: {name: value_events}\nsparsify: {quantiser: {horizon: 2}}\n";
    const JobOutcome job = train_given(yaml, 4, 40);
    CHECK(job.totals().messages > 0);
    CHECK(job.totals().payload_bytes < 4 * 2 * 10 * 4 * reference::small_layout().size());
    if (more.find("drift") == std::string::npos)
      check_close(mean_of(job), mean_way(4, job.ranks[0].x.size(), 40, 4, 1.0, 0.0, true), 2e-4);
  }
}

/// Where models are that have all taken a step from 0 in the first round and none ever after, but by mixing on a ring
/// of equal weights and by momentum; in double.
std::vector<double> after_one_step(const std::vector<double>& step, Iteration rounds, double mu,
                                   const std::string& velocity) {
  const std::size_t ranks = step.size();
  std::vector<double> phi(ranks), z(ranks), m(ranks), before(ranks);
  for (Iteration round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ranks; ++i) {
      const double d = round == 0 ? -step[i] : 0.0;
      m[i] = velocity == "differences" ? mu * m[i] + d : 0.0;
      z[i] = phi[i] - (d + mu * m[i]);
    }
    for (std::size_t i = 0; i < ranks; ++i) {
      phi[i] = (z[(i + ranks - 1) % ranks] + z[i] + z[(i + 1) % ranks]) / 3.0;
      if (velocity == "differences") continue;
      const double u = velocity == "own" ? z[i] : 0.5 * (z[i] + phi[i]);
      phi[i] += mu * (u - before[i]);
      before[i] = u;
    }
  }
  return phi;
}

TEST_CASE("models come together as momentum's recursion says, soonest if it goes by the point halfway") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  constexpr Iteration iterations = 40;
  for (const int ranks : {4, 8}) {
    std::map<std::string, double> furthest;
    for (const std::string velocity : {"own", "halfway", "differences"}) {
      const std::string keys = "local_steps: 1, outer: {learning_rate: 1, momentum: 0.9, velocity: " + velocity + "}";
      const JobOutcome job =
          train_locally("topology: {graph: {name: ring}, weights: {name: uniform}}\n" + gossip(keys) + everything,
                        layout, initial, ZeroGradient(),
                        {.ranks = ranks,
                         .descent = {.learning_rate = 0.0},
                         .iterations = iterations,
                         .run = Ranks::threads,
                         .prepare = [](LocalRank& rank) {
                           std::ranges::fill(rank.replica.values.span(), rank.rank() == 1 ? 8.0F : 0.0F);
                         }});
      std::vector<double> step(static_cast<std::size_t>(ranks));
      step[1] = 8.0;
      const auto expected = after_one_step(step, iterations, 0.9, velocity);
      const double mean = std::accumulate(expected.begin(), expected.end(), 0.0) / ranks;
      for (std::size_t r = 0; r < expected.size(); ++r) {
        CHECK(std::abs(job.ranks[r].x[0] - expected[r]) < 1e-4);
        furthest[velocity] = std::max(furthest[velocity], std::abs(expected[r] - mean));
      }
    }
    // The slowest eigenvalue is 1/3 with four ranks, 0.80 with eight. 0.95^40 beside 0.77^40, and 0.90^40; and what
    // differences differ by, which is forgotten by 0.9 a round.
    CHECK(furthest["own"] > 0.1);
    CHECK(furthest["halfway"] < (ranks == 4 ? 1e-3 : 0.2) * furthest["own"]);
    CHECK(furthest["differences"] > furthest["halfway"]);
  }
}

TEST_CASE("the mean takes DiLoCo's outer steps, on any graph, whatever fires and however it is rounded") {
  constexpr Iteration iterations = 46;
  const auto expected = mean_way(5, reference::small_layout().size(), iterations, 3, 0.7, 0.5, true);
  const std::string diloco = "exchange: {name: diloco, local_steps: 3, outer: {learning_rate: 0.7, momentum: 0.5}}\n";
  check_close(mean_of(train_given(diloco, 5, iterations)), expected, 2e-4);
  std::vector<std::string> exchanges{gasloc("local_steps: 3"), gasloc("local_steps: 3, overlap: true")};
  for (const std::string keys : {"mixing: {name: arrival}", "mixing: {name: difference, gamma: 0.3}",
                                 "correction: {name: drift}", "mixing: {name: difference, gamma: 0.3}, delay: 1",
                                 "mixing: {name: difference, gamma: 0.3}, delay: 1, correction: {name: drift}",
                                 "correction: {name: drift}, overlap: true",
                                 "correction: {name: drift}, outer: {velocity: differences, momentum: 0.5}"})
    for (const std::string sparsify :
         {"", "sparsify: {selector: {name: topk, density: 0.1}}\n", "sparsify: {quantiser: {name: int8}}\n"})
      exchanges.push_back(gossip("local_steps: 3, " + keys) + some + sparsify);
  for (const std::string& exchange : exchanges) {
    for (const auto& graph : graph_choices()) {
      CAPTURE(exchange);
      CAPTURE(graph.yaml);
      const JobOutcome job = train_given(graph.yaml + exchange, 5, iterations);
      check_close(mean_of(job), expected, 5e-4);
      if (exchange.find("gasloc") == std::string::npos) {
        CHECK(job.totals().events > 20);
        CHECK(job.totals().events < 5 * 4 * 14);
      }
    }
  }
}

TEST_CASE("a plain outer step of models that stand still keeps their sum exactly") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const std::string& exchange :
       {gasloc(std::string("local_steps: 2, ") + plain_outer), gossip(std::string("local_steps: 2, ") + plain_outer) +
                                                                   "trigger: {name: geometric, scale: 2e4, ratio: 0.6, "
                                                                   "measure: norm, warmup_iterations: 0}\n"}) {
    const auto sum_after = [&](Iteration iterations) {
      const JobOutcome job = train_locally(
          "topology: {graph: {name: complete}, weights: {name: uniform}}\n" + exchange, layout, initial, ZeroGradient(),
          {.ranks = 4,
           .descent = {.learning_rate = 0.0},
           .iterations = iterations,
           .run = Ranks::threads,
           .prepare = [](LocalRank& rank) { whole_numbers(rank.rank(), 0, 512, rank.replica.values.span()); }});
      std::vector<double> sum(layout.size());
      for (const RankOutcome& rank : job.ranks)
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += static_cast<double>(rank.x[e]);
      return std::pair(sum, job.hashes());
    };
    const auto before = sum_after(0), after = sum_after(7);
    CHECK(after.first == before.first);
    CHECK(after.second != before.second);
  }
}

// Who is heard of in a round is a matter of the round's number: by iterations it would always be the same.
TEST_CASE("on a graph that changes it does so from round to round") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const JobOutcome job =
      train_locally(one_peer + gasloc(std::string("local_steps: 2, ") + plain_outer), layout, initial, ZeroGradient(),
                    {.ranks = 8,
                     .descent = {.learning_rate = 0.0},
                     .iterations = 7,
                     .run = Ranks::threads,
                     .prepare = [](LocalRank& rank) { whole_numbers(rank.rank(), 0, 8, rank.replica.values.span()); }});
  for (const RankOutcome& rank : job.ranks) CHECK(rank.x == job.ranks[0].x);
}

TEST_CASE("events are those of rounds, and messages go to every neighbour once an event") {
  const JobOutcome job = train_given(ring + gossip("local_steps: 5") + some, 4, 31);
  for (const RankOutcome& rank : job.ranks) {
    std::uint64_t fired = 0;
    for (std::size_t k = 0; k < rank.events.size(); ++k)
      for (const bool event : rank.events[k]) {
        fired += event ? 1 : 0;
        if (event) CHECK(k % 5 == 4);
      }
    CHECK(fired > 0);
    CHECK(rank.totals.events == fired);
    CHECK(rank.totals.messages == 2 * fired);
    CHECK(rank.totals.packets == 2 * 6);
  }
}

// Ranks whose curvatures and optima differ. Without correction they rest elsewhere, the further the more local steps.
TEST_CASE("drift correction learns from outer steps, too: ranks with unlike data reach the minimum of their sum" *
          doctest::test_suite("arithmetic")) {
  Layout layout;
  layout.append("a", {5});
  layout.append("b", {3});
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const int ranks : {4, 8}) {
    const Unlike problem(ranks, layout.size());
    // With one local step it is exact; with more, DiLoCo's own rest point is another one, by its local steps.
    const auto distance = [&](const std::string& exchange) {
      return problem.distance(train_locally(
          ring + exchange, layout, initial, problem,
          {.ranks = ranks, .descent = {.learning_rate = 0.02}, .iterations = 6000, .run = Ranks::threads}));
    };
    for (const std::string more :
         {"overlap: true, outer: {momentum: 0.5}", "outer: {momentum: 0.5}", "outer: {momentum: 0}"}) {
      const std::string keys = "local_steps: 1, " + more;
      CAPTURE(ranks);
      CAPTURE(more);
      const double without = distance(gossip(keys) + everything);
      const double with = distance(gossip(keys + ", correction: {name: drift}") + everything);
      const double rarely = distance(gossip(keys + ", correction: {name: drift}") +
                                     "trigger: {name: etg, scale: 0.3, exponent: 0.7, maximum_silence: 10}\n");
      CHECK(without > (more.starts_with("overlap") ? 0.02 : 0.005));
      CHECK(with < 0.1 * without);
      CHECK(rarely < 0.2 * without);
    }
  }
}

// Each edge has two events an iteration: both ends end a round, and answer before the next one does.
TEST_CASE(
    "along alternating edges, too, ranks with unlike data reach the minimum of their sum, and no momentum is needed "
    "for it" *
    doctest::test_suite("arithmetic")) {
  Layout layout;
  layout.append("a", {5});
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const int ranks : {4, 8}) {
    const Unlike problem(ranks, layout.size());
    const Plan plan(ring +
                    gossip("schedule: asynchronous, local_steps: 2, correction: {name: drift}, "
                           "outer: {learning_rate: 1, momentum: 0}") +
                    everything);
    const Topology topology = plan.topology(ranks);
    const LocalJob job{.topology = topology,
                       .layout = layout,
                       .initial = initial,
                       .plan = plan.exchange(),
                       .step = {.learning_rate = 0.02}};
    LocalWorld world(job);
    std::vector<std::unique_ptr<LocalRank>> members;
    for (int r = 0; r < ranks; ++r) members.push_back(world.make_rank(r));
    for (Iteration k = 0; k < 4000; ++k) {
      for (const auto& rank : members) {
        rank->member.start(k);
        rank->member.communication().flush();
        problem.gradient(rank->rank(), k, rank->replica.values.span(), rank->replica.gradients.span());
        rank->member.finish(k);
        for (std::size_t e = 0; e < layout.size(); ++e)
          rank->replica.values.span()[e] -= 0.02F * rank->replica.gradients.span()[e];
        rank->member.stepped(k);
      }
    }
    JobOutcome outcome{.ranks = std::vector<RankOutcome>(static_cast<std::size_t>(ranks))};
    for (const auto& rank : members) {
      rank->member.service().end();
      const auto x = rank->replica.values.span();
      outcome.ranks[static_cast<std::size_t>(rank->rank())].x.assign(x.begin(), x.end());
    }
    CHECK(problem.distance(outcome) < 0.02);
  }
}

// By the models themselves it would not: what is under way when momentum is taken is missing from them.
TEST_CASE("asynchronously, too, the mean takes DiLoCo's outer steps, whatever the rounds' times") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  constexpr int ranks = 4;
  constexpr Iteration iterations = 60;
  const std::string keys = "schedule: asynchronous, local_steps: 3, outer: {learning_rate: 0.7, momentum: ";
  struct Case {
    std::string exchange;
    double momentum;
  };
  for (const auto& [exchange, momentum] : {Case{gossip(keys + "0}") + everything, 0.0},
                                           {gossip(keys + "0}") + some, 0.0},
                                           {gossip(keys + "0.5}") + everything, 0.5},
                                           {gossip(keys + "0.9}") + some, 0.9}}) {
    CAPTURE(exchange);
    const Plan plan(ring + exchange);
    const Topology topology = plan.topology(ranks);
    const LocalJob job{.topology = topology,
                       .layout = layout,
                       .initial = initial,
                       .plan = plan.exchange(),
                       .engine = EngineKind::thread_engine,
                       .delays = 5};
    std::vector<std::vector<float>> x(ranks);
    run_local_ranks(job, [&](LocalRank& rank) {
      const auto values = rank.replica.values.span(), g = rank.replica.gradients.span();
      // Some end within a round, which then does not count.
      for (Iteration k = 0; k < iterations + rank.rank() % 3; ++k) {
        rank.member.start(k);
        whole_numbers(rank.rank(), k, 1, g);
        rank.member.finish(k);
        for (std::size_t e = 0; e < values.size(); ++e) values[e] -= 0.125F * g[e];
        rank.member.stepped(k);
        if (k % (2 + rank.rank()) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      rank.member.service().end();
      rank.member.settle();
      x[static_cast<std::size_t>(rank.rank())].assign(values.begin(), values.end());
      rank.member.leave();
    });
    std::vector<double> mean(layout.size());
    for (const auto& of_rank : x)
      for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += of_rank[e] / static_cast<double>(ranks);
    check_close(mean, mean_way(ranks, layout.size(), iterations, 3, 0.7, momentum, true), 5e-4);
  }
}

TEST_CASE("an idle rank's model moves by what it mixes, and keeps its local steps") {
  const std::string yaml = ring +
                           gossip(
                               "schedule: asynchronous, local_steps: 3, outer: {learning_rate: 1, "
                               "momentum: 0}") +
                           everything;
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(2);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  LocalWorld world(job);
  const auto a = world.make_rank(0), b = world.make_rank(1);
  const auto iterate = [&](LocalRank& rank, Iteration k) {
    rank.member.start(k);
    rank.member.finish(k);
    for (float& value : rank.replica.values.span()) value += 64.0F * static_cast<float>(rank.rank() + 1);
    rank.member.stepped(k);
  };
  // The first rank stops within a round; the other goes on.
  for (Iteration k = 0; k < 4; ++k) iterate(*a, k);
  for (Iteration k = 0; k < 12; ++k) iterate(*b, k);
  for (Iteration k = 4; k < 20; ++k) {
    a->member.service().idle(k);
    b->member.service().idle(k + 8);
  }
  a->member.communication().flush(), b->member.communication().flush();
  a->member.service().idle(20), b->member.service().idle(28);
  const double sum = static_cast<double>(a->replica.values.span()[0]) + b->replica.values.span()[0];
  CHECK(std::abs(sum - (4 * 64 + 12 * 128)) < 1.0);
  CHECK(std::abs(a->replica.values.span()[0] - 4 * 64) > 64.0F);
}

TEST_CASE("where training ends with a round, it is sent; where it ends within one, its steps are taken back") {
  const std::string yaml =
      ring + gossip(std::string("schedule: asynchronous, local_steps: 3, ") + plain_outer) + everything;
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(2);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  for (const Iteration iterations : {3, 5}) {
    LocalWorld world(job);
    const auto first = world.make_rank(0);  // it sends first
    const auto second = world.make_rank(1);
    for (Iteration k = 0; k < iterations; ++k) {
      first->member.start(k);
      first->member.finish(k);
      for (float& value : first->replica.values.span()) value += 64.0F;
      first->member.stepped(k);
    }
    CHECK(first->member.ledger().totals().packets == (iterations == 3 ? 0 : 1));
    first->member.service().end();
    first->member.communication().flush();
    CHECK(first->member.ledger().totals().packets == 1);
    // The event has taken it halfway to the other one.
    for (const float value : first->replica.values.span()) CHECK(value == 96.0F);
  }
}

// Rank 0 sends first, and ends its first round before or after rank 1 does.
TEST_CASE("an asynchronous rank sends a round's news as soon as it has heard, and a round once") {
  const std::string yaml =
      ring + gossip(std::string("schedule: asynchronous, local_steps: 6, ") + plain_outer) + everything;
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(2);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  for (const Iteration late : {Iteration{2}, Iteration{8}}) {
    CAPTURE(late);
    LocalWorld world(job);
    const auto first = world.make_rank(0), second = world.make_rank(1);
    Iteration k0 = 0, k1 = 0;
    const auto iterate = [&](LocalRank& rank, Iteration& k, Iteration end) {
      for (; k < end; ++k) {
        rank.member.communication().progress();
        rank.member.start(k);
        rank.member.communication().flush();
        rank.member.finish(k);
        for (float& value : rank.replica.values.span()) value += 64.0F;
        rank.member.stepped(k);
      }
    };
    const auto packets = [](const LocalRank& rank) { return rank.member.ledger().totals().packets; };
    iterate(*second, k1, late);
    iterate(*first, k0, 7);  // its round ends with the sixth iteration; it is sent in the seventh
    CHECK(packets(*first) == 1);
    CHECK(packets(*second) == 0);  // it has not heard
    iterate(*second, k1, 9);
    CHECK(packets(*second) == 1);  // within its second round
    iterate(*second, k1, 12);
    iterate(*first, k0, 12);
    CHECK(packets(*first) == 1);  // it may send, and has no news
    CHECK(packets(*second) == 1);
    iterate(*first, k0, 13);
    iterate(*second, k1, 14);
    CHECK(packets(*first) == 2);
    CHECK(packets(*second) == 2);
    iterate(*first, k0, 15);  // nothing is under way
    CHECK(packets(*first) == 2);
    const double sum = static_cast<double>(first->replica.values.span()[0]) + second->replica.values.span()[0];
    CHECK(std::abs(sum - 64.0 * static_cast<double>(k0 + k1)) < 0.01);
  }
}

TEST_CASE("asynchronous ranks are warned of much momentum of models") {
  const auto said = [](const std::string& keys) {
    const Plan plan(ring + gossip(keys));
    return plan.exchange().warnings(plan.topology(4)).size();
  };
  CHECK(said("schedule: asynchronous, outer: {momentum: 0.9, velocity: halfway}") == 1);
  CHECK(said("schedule: asynchronous, outer: {momentum: 0.9}") == 0);
  CHECK(said("schedule: asynchronous") == 0);
  CHECK(said("outer: {momentum: 0.9}") == 0);
}

TEST_CASE("what would lose the mean, or is of no use, is refused with the remedy") {
  CHECK(said_of(ring + gossip("schedule: asynchronous, overlap: true")).find("overlap") != std::string::npos);
  CHECK(said_of(ring + gossip("mixing: {name: stale}")).find("{name: arrival}") != std::string::npos);
  CHECK(said_of(ring + gasloc("schedule: asynchronous")).find("take gossip_outer") != std::string::npos);
  CHECK(said_of(ring + gasloc("local_steps: 0")).find("local_steps") != std::string::npos);
  CHECK(said_of(ring + gossip("outer: {momentum: 1}")).find("momentum") != std::string::npos);
  CHECK(said_of(one_peer + gossip("local_steps: 2")).find("gasloc") != std::string::npos);
}

}  // namespace
}  // namespace hearsay::gossip_test

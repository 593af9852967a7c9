// Every neighbour exchange computes what the plain simulation of tests/reference/ computes, event for event.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/neighbour/directed.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::reference_test {
namespace {

using namespace test;

constexpr double learning_rate = 0.1;
constexpr Iteration iterations = 60;

std::vector<std::size_t> lengths_of(const Layout& layout) {
  std::vector<std::size_t> lengths;
  for (const Segment& s : layout.segments()) lengths.push_back(s.length);
  return lengths;
}

/// ‖a − b‖∞, or no number where one of them is none.
double largest_error(std::span<const float> a, std::span<const float> b) {
  double error = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    error = std::max(error, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return error;
}
double largest(std::span<const float> values) {
  double most = 1e-30;
  for (const float v : values) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

/// Where the events of a rank first differ from the simulation's; empty if nowhere.
std::string first_flip(const RankOutcome& real, const reference::Outcome& expected, std::size_t rank) {
  for (std::size_t k = 0; k < real.events.size(); ++k) {
    for (std::size_t s = 0; s < real.events[k].size(); ++s) {
      if (real.events[k][s] == expected.events[rank][k][s]) continue;
      return "rank " + std::to_string(rank) + ", iteration " + std::to_string(k) + ", segment " + std::to_string(s) +
             (real.events[k][s] ? " fired" : " did not fire") + ", unlike the simulation; " + expected.closest.text();
    }
  }
  return {};
}

/// Errors are relative to the largest value that the segment has on any rank: where a value of one passes near 0, the
/// rounding of the values that it is mixed of does not.
void check_equal(const JobOutcome& real, const reference::Outcome& expected, const Layout& layout) {
  for (std::size_t s = 0; s < layout.count(); ++s) {
    const auto segment = [&](const std::vector<float>& x) {
      return std::span(x).subspan(layout[static_cast<SegmentId>(s)].offset, layout[static_cast<SegmentId>(s)].length);
    };
    double size = 0.0;
    for (const auto& x : expected.x) size = std::max(size, largest(segment(x)));
    for (std::size_t r = 0; r < real.ranks.size(); ++r) {
      CAPTURE(r);
      CAPTURE(s);
      CHECK(largest_error(segment(real.ranks[r].x), segment(expected.x[r])) <= 1e-5 * size);
    }
  }
  for (std::size_t r = 0; r < real.ranks.size(); ++r) CHECK(first_flip(real.ranks[r], expected, r) == "");
  CHECK(real.totals().events == expected.event_count);
  CHECK(real.totals().messages == expected.message_count);
}

/// One configuration at one P, real and simulated, with copies that are `delay` iterations old.
void compare(const GraphChoice& graph, const TriggerChoice& trigger, const MixingChoice& mixing,
             const SparsifyChoice& sparsify, int ranks, Ranks run, int delay = 0, double correction = 0.0,
             bool diffusion = false) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 7);
  std::string options = "lockstep, delay: " + std::to_string(delay);
  if (correction > 0.0) options += ", correction: {name: drift, strength: " + std::to_string(correction) + "}";
  if (diffusion) options += ", strategy: diffusion";
  const std::string yaml = graph.yaml + eventgrad(mixing.yaml, options) + trigger.yaml + sparsify.yaml;
  CAPTURE(ranks);
  CAPTURE(yaml);
  const reference::Setup setup{.weights = graph.weights(ranks),
                               .segment_lengths = lengths_of(layout),
                               .initial = problem.initial(),
                               .learning_rate = learning_rate,
                               .iterations = iterations,
                               .trigger = trigger.rule,
                               .mixing = mixing.rule,
                               .gamma = difference_gamma,
                               .density = sparsify.density,
                               .delay = delay,
                               .correction = correction,
                               .diffusion = diffusion};
  const JobOutcome real = train_locally(
      yaml, layout, problem.initial(), problem,
      {.ranks = ranks, .descent = {.learning_rate = learning_rate}, .iterations = iterations, .run = run});
  check_equal(real, simulate(setup, problem), layout);
}

void compare_everything(int ranks, Ranks run) {
  for (const auto& graph : graph_choices()) {
    for (const auto& trigger : trigger_choices()) {
      for (const auto& mixing : mixing_choices()) {
        for (const auto& sparsify : sparsify_choices()) compare(graph, trigger, mixing, sparsify, ranks, run);
      }
    }
  }
}

TEST_CASE("eventgrad is the simulation: one rank") { compare_everything(1, Ranks::one_thread); }
TEST_CASE("eventgrad is the simulation: two ranks" * doctest::test_suite("arithmetic")) {
  compare_everything(2, Ranks::one_thread);
}
TEST_CASE("eventgrad is the simulation: three ranks" * doctest::test_suite("arithmetic")) {
  compare_everything(3, Ranks::one_thread);
}
TEST_CASE("eventgrad is the simulation: four ranks") { compare_everything(4, Ranks::one_thread); }
TEST_CASE("eventgrad is the simulation: five ranks" * doctest::test_suite("arithmetic")) {
  compare_everything(5, Ranks::one_thread);
}
TEST_CASE("eventgrad is the simulation: eight ranks" * doctest::test_suite("arithmetic")) {
  compare_everything(8, Ranks::one_thread);
}

TEST_CASE("eventgrad is the simulation with communication threads") {
  const auto graphs = graph_choices();
  std::size_t next = 0;
  for (const auto& trigger : trigger_choices()) {
    for (const auto& mixing : mixing_choices()) {
      for (const auto& sparsify : sparsify_choices()) {
        const int ranks = 2 + static_cast<int>(next % 4);
        compare(graphs[next % graphs.size()], trigger, mixing, sparsify, ranks,
                Ranks::threads_with_communication_threads);
        ++next;
      }
    }
  }
}

TEST_CASE("dpsgd is the simulation") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    for (const auto& graph : graph_choices()) {
      for (const auto run : {Ranks::one_thread, Ranks::threads_with_communication_threads}) {
        const reference::Quadratic problem(layout, ranks, 21);
        CAPTURE(ranks);
        CAPTURE(graph.yaml);
        const JobOutcome real = train_locally(graph.yaml + dpsgd, layout, problem.initial(), problem,
                                              {.ranks = ranks, .iterations = iterations, .run = run});
        const reference::Setup setup{.weights = graph.weights(ranks),
                                     .segment_lengths = lengths_of(layout),
                                     .initial = problem.initial(),
                                     .learning_rate = learning_rate,
                                     .iterations = iterations,
                                     .trigger = {}};
        check_equal(real, simulate(setup, problem), layout);
      }
    }
  }
}

TEST_CASE("dpsgd is the simulation on a graph that changes, and sends one packet a rank and iteration") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {2, 3, 4, 5, 8}) {
    for (const auto run : {Ranks::one_thread, Ranks::threads_with_communication_threads}) {
      CAPTURE(ranks);
      const reference::Quadratic problem(layout, ranks, 21);
      const JobOutcome real = train_locally(one_peer + dpsgd, layout, problem.initial(), problem,
                                            {.ranks = ranks, .iterations = iterations, .run = run});
      const reference::Setup setup{.weights = reference::complete_weights(ranks),
                                   .sequence = reference::one_peer_exponential_sequence(ranks),
                                   .segment_lengths = lengths_of(layout),
                                   .initial = problem.initial(),
                                   .learning_rate = learning_rate,
                                   .iterations = iterations,
                                   .trigger = {}};
      check_equal(real, simulate(setup, problem), layout);
      CHECK(real.totals().packets == static_cast<std::uint64_t>(ranks * iterations));
    }
  }
}

TEST_CASE("with a delay the simulation's copies are those of the iteration before" *
          doctest::test_suite("arithmetic")) {
  const auto mixings = mixing_choices();  // the last one, arrival, is refused
  std::size_t next = 0;
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const auto& graph : graph_choices()) {
      for (const auto& trigger : trigger_choices()) {
        if (trigger.rule.policy == reference::Policy::periodic) continue;  // refused
        for (const auto& sparsify : sparsify_choices())  // with threads: on one thread nobody could wait for room
          compare(graph, trigger, mixings[next++ % 2], sparsify, ranks, Ranks::threads_with_communication_threads, 1);
      }
    }
  }
}

TEST_CASE("with drift correction, with and without a delay, it is the simulation" * doctest::test_suite("arithmetic")) {
  const auto sparsifies = sparsify_choices();
  std::size_t next = 0;  // ranks that wait for a delayed copy take a thread each, and time: one code after the other
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const auto& graph : graph_choices()) {
      for (const auto& trigger : trigger_choices()) {
        for (const auto& mixing : mixing_choices()) {
          if (mixing.rule == reference::Mixing::stale) continue;  // refused
          for (const auto& sparsify : sparsifies)
            compare(graph, trigger, mixing, sparsify, ranks, Ranks::one_thread, 0, 0.1);
          if (trigger.rule.policy == reference::Policy::periodic || mixing.rule != reference::Mixing::difference)
            continue;
          compare(graph, trigger, mixing, sparsifies[(next++ + static_cast<std::size_t>(ranks)) % sparsifies.size()],
                  ranks, Ranks::threads_with_communication_threads, 1, 0.05);
        }
      }
    }
  }
}

TEST_CASE("dpsgd with drift correction is the simulation") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const auto& graph : graph_choices()) {
      for (const int delay : {0, 1}) {
        const reference::Quadratic problem(layout, ranks, 21);
        const std::string yaml = graph.yaml + "exchange: {name: dpsgd, delay: " + std::to_string(delay) +
                                 ", correction: {name: drift, strength: 0.2}}\n";
        CAPTURE(yaml);
        CAPTURE(ranks);
        const JobOutcome real =
            train_locally(yaml, layout, problem.initial(), problem,
                          {.ranks = ranks, .iterations = iterations, .run = Ranks::threads_with_communication_threads});
        const reference::Setup setup{.weights = graph.weights(ranks),
                                     .segment_lengths = lengths_of(layout),
                                     .initial = problem.initial(),
                                     .learning_rate = learning_rate,
                                     .iterations = iterations,
                                     .trigger = {},
                                     .mixing = reference::Mixing::difference,
                                     .gamma = delay == 0 ? 1.0 : 0.5,
                                     .delay = delay,
                                     .correction = 0.2};
        check_equal(real, simulate(setup, problem), layout);
      }
    }
  }
}

// A rank waits before its gradient is taken, so ranks cannot be run on one thread.
TEST_CASE("with strategy diffusion the simulation's gradients are those of the mixed model" *
          doctest::test_suite("arithmetic")) {
  const auto graphs = graph_choices();
  const auto sparsifiers = sparsify_choices();
  std::size_t next = 0;
  for (const auto& trigger : trigger_choices()) {
    for (const auto& mixing : mixing_choices()) {
      for (const double correction : {0.0, 0.1}) {
        if (correction > 0.0 && mixing.rule == reference::Mixing::stale) continue;  // refused
        for (const int ranks : {1, 2, 3, 5}) {
          compare(graphs[next % graphs.size()], trigger, mixing, sparsifiers[next % sparsifiers.size()], ranks,
                  Ranks::threads, 0, correction, true);
          ++next;
        }
      }
    }
  }
}

TEST_CASE("dpsgd with strategy diffusion is the simulation, on a graph that changes, too") {
  const Layout layout = reference::small_layout();
  const auto check = [&](const std::string& graph, const reference::Setup& setup, const std::string& more, int ranks) {
    const std::string yaml = graph + "exchange: {name: dpsgd, strategy: diffusion" + more + "}\n";
    CAPTURE(yaml);
    CAPTURE(ranks);
    const reference::Quadratic problem(layout, ranks, 21);
    const JobOutcome real =
        train_locally(yaml, layout, problem.initial(), problem,
                      {.ranks = ranks, .iterations = iterations, .run = Ranks::threads_with_communication_threads});
    check_equal(real, simulate(setup, problem), layout);
  };
  for (const int ranks : {2, 3, 5, 8}) {
    reference::Setup setup{.weights = reference::ring_weights(ranks),
                           .segment_lengths = lengths_of(layout),
                           .initial = reference::Quadratic(layout, ranks, 21).initial(),
                           .learning_rate = learning_rate,
                           .iterations = iterations,
                           .trigger = {},
                           .diffusion = true};
    check(ring, setup, "", ranks);
    setup.mixing = reference::Mixing::difference, setup.gamma = 1.0, setup.correction = 0.2;
    check(ring, setup, ", correction: {name: drift, strength: 0.2}", ranks);
    setup.mixing = reference::Mixing::stale, setup.correction = 0.0;
    setup.weights = reference::complete_weights(ranks);
    setup.sequence = reference::one_peer_exponential_sequence(ranks);
    check(one_peer, setup, "", ranks);
  }
}

TEST_CASE("diffusion is refused where nobody waits, and where messages are to travel while ranks compute") {
  for (const std::string more :
       {"name: dpsgd, schedule: asynchronous", "name: eventgrad, delay: 1", "name: gossip_outer"}) {
    CAPTURE(more);
    Config root = Config::from_text("exchange: {strategy: diffusion, " + more + "}\n");
    static_cast<void>(plan_exchange(root));
    CHECK_THROWS_WITH_AS(root.document().throw_if_invalid(), doctest::Contains("exchange.strategy"), ConfigError);
  }
}

TEST_CASE("a delay is refused where it makes no sense") {
  for (const std::string text : {"exchange: {name: dpsgd, delay: 2}", "exchange: {name: dpsgd, delay: -1}",
                                 "exchange: {name: dpsgd, delay: 1, schedule: asynchronous}",
                                 "exchange: {name: eventgrad, delay: 1, mixing: {name: arrival}}",
                                 "{exchange: {name: eventgrad, delay: 1}, trigger: {name: periodic, period: 4}}"}) {
    CAPTURE(text);
    Config root = Config::from_text(text);
    static_cast<void>(plan_exchange(root));
    CHECK_THROWS_AS(root.document().throw_if_invalid(), ConfigError);
  }
}

struct MethodChoice {
  std::string yaml;
  reference::Method method;
  double momentum;
};
std::vector<MethodChoice> method_choices() {
  using reference::Method;
  return {{"exchange: {name: quasi_global_momentum, momentum: 0.8}\n", Method::quasi_global_momentum, 0.8},
          {"exchange: {name: gradient_tracking}\n", Method::gradient_tracking, 0.0},
          {"exchange: {name: momentum_tracking, momentum: 0.6}\n", Method::momentum_tracking, 0.6},
          {"exchange: {name: push_sum}\n", Method::push_sum, 0.0}};
}

reference::Setup graph_of(std::vector<std::vector<double>> weights,
                          std::vector<std::vector<std::vector<double>>> sequence = {}) {
  reference::Setup setup;
  setup.weights = std::move(weights);
  setup.sequence = std::move(sequence);
  return setup;
}

/// As check_equal, but by the largest value on any rank: this simulation rounds nothing, so where a rank's only value
/// is near 0 by chance, or its weight is, the exchange's rounding is a larger part of it.
void check_close(const JobOutcome& real, const reference::Outcome& expected, const Layout& layout) {
  for (const Segment& s : layout.segments()) {
    double error = 0.0, size = 0.0;
    for (std::size_t r = 0; r < real.ranks.size(); ++r) {
      for (std::size_t e = s.offset; e < s.offset + s.length; ++e) {
        const double difference = std::abs(static_cast<double>(real.ranks[r].x[e]) - expected.x[r][e]);
        error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
        size = std::max(size, std::abs(static_cast<double>(expected.x[r][e])));
      }
    }
    CAPTURE(s.name);
    CHECK(error <= 1e-5 * size);
  }
  CHECK(real.totals().events == expected.event_count);
  CHECK(real.totals().messages == expected.message_count);
}

/// `setup` has the graph and nothing else yet.
void compare(const MethodChoice& choice, const std::string& topology, reference::Setup setup, Ranks run) {
  const Layout layout = reference::small_layout();
  const auto ranks = static_cast<int>(setup.weights.size());
  const reference::Quadratic problem(layout, ranks, 21);
  CAPTURE(choice.yaml);
  CAPTURE(topology);
  CAPTURE(ranks);
  constexpr double rate = 0.05;
  setup.segment_lengths = lengths_of(layout);
  setup.initial = problem.initial();
  setup.learning_rate = rate;
  setup.iterations = iterations;
  const JobOutcome real =
      train_locally(topology + choice.yaml, layout, problem.initial(), problem,
                    {.ranks = ranks, .descent = {.learning_rate = rate}, .iterations = iterations, .run = run});
  check_close(real, simulate(setup, choice.method, choice.momentum, problem), layout);
}

TEST_CASE("momentum, trackers and pushed sums are the simulation" * doctest::test_suite("arithmetic")) {
  for (const MethodChoice& choice : method_choices()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (const auto run : {Ranks::one_thread, Ranks::threads_with_communication_threads}) {
        for (const auto& graph : graph_choices()) compare(choice, graph.yaml, graph_of(graph.weights(ranks)), run);
        if (ranks > 1)
          compare(choice, one_peer,
                  graph_of(reference::complete_weights(ranks), reference::one_peer_exponential_sequence(ranks)), run);
      }
    }
  }
}

TEST_CASE("pushed sums are the simulation on directed graphs") {
  for (const DirectedChoice& graph : directed_choices()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const DirectedFile file(ranks);
      for (const auto run : {Ranks::one_thread, Ranks::threads_with_communication_threads})
        compare(method_choices().back(), graph.yaml(file), graph_of(graph.shares(ranks)), run);
    }
  }
}

// Integers: halves of halves of them are exact as long as there are no more halvings than factors of two.
TEST_CASE("on 2^t ranks a period of the one-peer exponential graph is the mean, to the last bit") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const int ranks : {2, 4, 8, 16}) {
    CAPTURE(ranks);
    const auto scale = static_cast<float>(ranks);
    const auto prepare = [&](LocalRank& rank) {
      auto x = rank.replica.values.span();
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = scale * static_cast<float>((rank.rank() * 37 + i * 11) % 101);
    };
    const Iteration period = Plan(one_peer + dpsgd).topology(ranks).period();
    CHECK((Iteration{1} << period) == ranks);
    const JobOutcome job = train_locally(one_peer + dpsgd, layout, initial, ZeroGradient(),
                                         {.ranks = ranks, .iterations = period, .prepare = prepare});
    for (std::size_t i = 0; i < layout.size(); ++i) {
      float sum = 0.0F;
      for (int r = 0; r < ranks; ++r) sum += static_cast<float>((r * 37 + static_cast<int>(i) * 11) % 101);
      for (const RankOutcome& rank : job.ranks) CHECK(rank.x[i] == sum);
    }
  }
}

TEST_CASE("exchanges that mix with old copies refuse a graph that changes") {
  for (const std::string& exchange : {eventgrad("{name: stale}"), std::string("exchange: {name: eventgrad}\n"),
                                      std::string("exchange: {name: dpsgd, schedule: asynchronous}\n"),
                                      std::string("exchange: {name: quasi_global_momentum, delay: 1}\n")}) {
    CAPTURE(exchange);
    Config root = Config::from_text(one_peer + exchange);
    const auto plan = plan_exchange(root);
    static_cast<void>(plan_topology(root, *plan));
    CHECK_THROWS_AS(root.document().throw_if_invalid(), ConfigError);
  }
}

// The comparison is worth something only if events are neither everywhere nor nowhere.
TEST_CASE("the simulated triggers fire sometimes") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 4, 7);
  for (const auto& trigger : trigger_choices()) {
    if (trigger.rule.policy == reference::Policy::always) continue;
    CAPTURE(trigger.yaml);
    const reference::Setup setup{.weights = reference::ring_weights(4),
                                 .segment_lengths = lengths_of(layout),
                                 .initial = problem.initial(),
                                 .learning_rate = learning_rate,
                                 .iterations = iterations,
                                 .trigger = trigger.rule};
    const auto possible = 4 * layout.count() * static_cast<std::size_t>(iterations);
    const auto events = simulate(setup, problem).event_count;
    CHECK(events > possible / 20);
    CHECK(events < possible * 9 / 10);
  }
}

}  // namespace
}  // namespace hearsay::reference_test

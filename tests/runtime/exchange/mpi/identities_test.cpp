// The key identities over a real window with communication threads, at every rank count that CTest starts this with.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/transport.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::identities_test {
namespace {

using namespace test;

constexpr double learning_rate = 0.1;
constexpr Iteration iterations = 60;
constexpr const char* every_bit = "trigger: {name: constant, threshold: 0, warmup_iterations: 0}\n";
constexpr const char* adaptive = "trigger: {name: adaptive, horizon: 1.7, history: 2, warmup_iterations: 3}\n";
constexpr reference::TriggerRule adaptive_rule{
    .policy = reference::Policy::adaptive, .horizon = 1.7, .history = 2, .warmup = 3};

/// Trains this rank of the job. Collective.
/// `own`: what the rank had counted before it served the others, until all were done.
RankOutcome train(const std::string& yaml, LedgerTotals* own = nullptr) {
  mpi::Communicator world;
  const ParticipantPlan plan(Config::from_text(yaml));
  const reference::Quadratic problem(reference::small_layout(), world.size(), 7);
  Parameters replica(reference::small_layout());
  if (world.rank() == 0) std::ranges::copy(problem.initial(), replica.values.span().begin());
  Participant member(std::make_unique<mpi::Transport>(world.handle()), plan.topology(world.size()), plan.exchange(),
                     replica);
  RankTrainer trainer(member, problem, {.learning_rate = learning_rate});
  for (Iteration k = 0; k < iterations; ++k) {
    trainer.start(k);
    trainer.finish(k);
  }
  if (own != nullptr) *own = member.ledger().totals();
  member.settle();
  return trainer.outcome();
}

reference::Outcome simulation(int ranks, const reference::TriggerRule& trigger, reference::Mixing mixing,
                              double density) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 7);
  std::vector<std::size_t> lengths;
  for (const Segment& s : layout.segments()) lengths.push_back(s.length);
  return simulate({.weights = reference::ring_weights(ranks),
                   .segment_lengths = lengths,
                   .initial = problem.initial(),
                   .learning_rate = learning_rate,
                   .iterations = iterations,
                   .trigger = trigger,
                   .mixing = mixing,
                   .gamma = difference_gamma,
                   .density = density},
                  problem);
}

void check_simulated(const RankOutcome& real, const reference::Outcome& expected, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  CAPTURE(expected.closest.text());
  CHECK(real.events == expected.events[r]);
  REQUIRE(real.x.size() == expected.x[r].size());
  for (std::size_t e = 0; e < real.x.size(); ++e) {
    CHECK(real.x[e] == doctest::Approx(expected.x[r][e]).epsilon(1e-5));
  }
}

TEST_CASE("dpsgd is the simulation, and sends every message that is possible") {
  mpi::Communicator world;
  const RankOutcome real = train(std::string(ring) + dpsgd);
  const auto expected = simulation(world.size(), {}, reference::Mixing::stale, 1.0);
  check_simulated(real, expected, world.rank());
  const auto degree = static_cast<std::uint64_t>(world.size() == 1 ? 0 : world.size() == 2 ? 1 : 2);
  CHECK(real.totals.messages == degree * 4 * iterations);
  CHECK(real.totals.payload_bytes == degree * 4 * 372 * iterations);
}

TEST_CASE("eventgrad with threshold 0 is dpsgd, and sparse copies of density 1 are whole segments") {
  const RankOutcome baseline = train(std::string(ring) + dpsgd);
  const RankOutcome events = train(ring + eventgrad("{name: stale}") + every_bit);
  const RankOutcome sparse =
      train(ring + eventgrad("{name: stale}") + every_bit + "sparsify: {selector: {name: topk, density: 1}}\n");
  CHECK(events.hash == baseline.hash);
  CHECK(sparse.hash == baseline.hash);
  CHECK(events.totals.messages == baseline.totals.messages);
  CHECK(events.totals.payload_bytes == baseline.totals.payload_bytes);
  CHECK(sparse.totals.payload_bytes == baseline.totals.payload_bytes);
}

TEST_CASE("eventgrad is the simulation, and two runs are one") {
  mpi::Communicator world;
  for (const auto& mixing : mixing_choices()) {
    for (const auto& sparsify : sparsify_choices()) {
      const std::string yaml = ring + eventgrad(mixing.yaml) + adaptive + sparsify.yaml;
      CAPTURE(yaml);
      const RankOutcome first = train(yaml);
      check_simulated(first, simulation(world.size(), adaptive_rule, mixing.rule, sparsify.density), world.rank());
      CHECK(train(yaml).hash == first.hash);
    }
  }
}

struct MethodChoice {
  std::string yaml;
  reference::Method method;
  double momentum = 0.0;
  std::vector<std::vector<double>> weights;
};

TEST_CASE("momentum, trackers and pushed sums are the simulation, and two runs are one") {
  using reference::Method;
  mpi::Communicator world;
  const auto weights = reference::ring_weights(world.size());
  const std::string directed = "topology: {graph: {name: directed_exponential}, weights: {name: uniform}}\n";
  const MethodChoice choices[]{
      {ring + std::string("exchange: {name: quasi_global_momentum, momentum: 0.8}\n"), Method::quasi_global_momentum,
       0.8, weights},
      {ring + std::string("exchange: {name: gradient_tracking}\n"), Method::gradient_tracking, 0.0, weights},
      {ring + std::string("exchange: {name: momentum_tracking, momentum: 0.5}\n"), Method::momentum_tracking, 0.5,
       weights},
      {directed + "exchange: {name: push_sum}\n", Method::push_sum, 0.0,
       reference::directed_exponential_shares(world.size())}};
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, world.size(), 7);
  std::vector<std::size_t> lengths;
  for (const Segment& s : layout.segments()) lengths.push_back(s.length);
  for (const MethodChoice& choice : choices) {
    CAPTURE(choice.yaml);
    const reference::Setup setup{.weights = choice.weights,
                                 .segment_lengths = lengths,
                                 .initial = problem.initial(),
                                 .learning_rate = learning_rate,
                                 .iterations = iterations,
                                 .trigger = {}};
    const RankOutcome first = train(choice.yaml);
    const auto r = static_cast<std::size_t>(world.rank());
    const auto expected = simulate(setup, choice.method, choice.momentum, problem);
    for (std::size_t e = 0; e < first.x.size(); ++e)
      CHECK(first.x[e] == doctest::Approx(expected.x[r][e]).epsilon(1e-4).scale(0.1));
    CHECK(train(choice.yaml).hash == first.hash);
  }
}

TEST_CASE("asynchronous ranks fire as often and send at most as much") {
  mpi::Communicator world;
  const std::string complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";
  LedgerTotals own;
  const RankOutcome real = train(complete + eventgrad("{name: stale}", "asynchronous") + every_bit, &own);
  const auto others = static_cast<std::uint64_t>(world.size() - 1);
  const std::uint64_t possible = others * 4 * iterations;
  CHECK(own.events == 4 * iterations);
  CHECK(real.totals.messages <= others * real.totals.events);
  CHECK(real.totals.messages + real.totals.deferred >= possible);
  if (world.size() > 1) CHECK(real.totals.messages > 0);
  for (const float v : real.x) CHECK(std::abs(v) < 10.0F);  // start and optima lie within 9 of zero
}

}  // namespace
}  // namespace hearsay::identities_test

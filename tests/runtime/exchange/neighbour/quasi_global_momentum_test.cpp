// The laws of quasi-global momentum.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"

namespace hearsay::quasi_global_momentum_test {
namespace {

using namespace test;

std::string quasi_global_momentum(const std::string& keys) {
  return "exchange: {name: quasi_global_momentum, " + keys + "}\n";
}

TEST_CASE("without momentum it is dpsgd, to the last bit and byte") {
  const Layout layout = reference::small_layout();
  for (const auto& graph : graph_choices()) {
    for (const std::string keys : {"delay: 0", "delay: 1"}) {
      for (const int ranks : {1, 2, 5}) {
        const reference::Quadratic problem(layout, ranks, 3);
        const auto train = [&](const std::string& exchange) {
          return train_locally(graph.yaml + exchange, layout, problem.initial(), problem,
                               {.ranks = ranks, .run = Ranks::threads});
        };
        const JobOutcome a = train(quasi_global_momentum("momentum: 0, " + keys));
        const JobOutcome b = train("exchange: {name: dpsgd, " + keys + "}\n");
        for (std::size_t r = 0; r < a.ranks.size(); ++r) CHECK(a.ranks[r].x == b.ranks[r].x);
        CHECK(a.totals().bytes() == b.totals().bytes());
        CHECK(a.totals().messages == b.totals().messages);
      }
    }
  }
}

// Quasi-hyperbolic momentum: m̂ ← (β + (1 − β) β) m̂ + (1 − β) g.
TEST_CASE("one rank alone has the momentum of its own way") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  constexpr double beta = 0.75, eta = 0.05;
  std::vector<double> x(problem.initial().begin(), problem.initial().end()), m(x.size());
  std::vector<float> at(x.size()), g(x.size());
  for (Iteration k = 0; k < 60; ++k) {
    std::ranges::transform(x, at.begin(), [](double value) { return static_cast<float>(value); });
    problem.gradient(0, k, at, g);
    for (std::size_t e = 0; e < x.size(); ++e) {
      x[e] -= eta * (beta * m[e] + g[e]);
      m[e] = (beta + (1.0 - beta) * beta) * m[e] + (1.0 - beta) * g[e];
    }
  }
  const JobOutcome alone = train_locally(ring + quasi_global_momentum("momentum: 0.75"), layout, problem.initial(),
                                         problem, {.ranks = 1, .descent = {.learning_rate = eta}, .iterations = 60});
  for (std::size_t e = 0; e < x.size(); ++e)
    CHECK(alone.ranks[0].x[e] == doctest::Approx(x[e]).epsilon(1e-4).scale(0.1));
}

// β = 1/2, η = 1/4, weights 1/2 or 1/4, whole numbers: all is exact.
TEST_CASE("the sum of the directions is the sum of the models' ways: mixing is none of it") {
  const Layout layout = reference::small_layout();
  constexpr double eta = 0.25;
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    Stepwise job(
        "topology: {graph: {name: complete}, weights: {name: uniform}}\n" + quasi_global_momentum("momentum: 0.5"),
        layout, ranks, [](int rank, std::span<float> x) { whole_numbers(rank, 99, 4096, x); });
    std::vector<double> m(layout.size()), x = job.sum_of_x();
    for (Iteration k = 0; k < 3; ++k) {
      std::vector<double> g(layout.size());
      job.exchange(k, eta, [&](int rank, std::span<float> own) {
        whole_numbers(rank, k, 4096, own);
        for (std::size_t e = 0; e < own.size(); ++e) g[e] += own[e];
      });
      CHECK(job.sum_of_x() == x);
      for (std::size_t e = 0; e < g.size(); ++e) g[e] += 0.5 * m[e];
      CHECK(job.sum_of_g() == g);
      job.step(k, eta);
      for (std::size_t e = 0; e < g.size(); ++e) m[e] = 0.5 * m[e] + 0.5 * g[e];
      x = job.sum_of_x();
    }
  }
}

TEST_CASE("without a learning rate it ends with a sentence; at 0 the direction stays what it was") {
  const Layout layout = reference::small_layout();
  const Plan plan(ring + quasi_global_momentum("momentum: 0.5"));
  const Topology topology = plan.topology(1);
  const std::vector<float> initial(layout.size(), 1.0F);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange(), .step = {}};
  LocalWorld world(job);
  const auto rank = world.make_rank(0);
  rank->member.start(0);
  std::ranges::fill(rank->replica.gradients.span(), 2.0F);
  CHECK_THROWS_AS(rank->member.finish(0), ConfigError);
  for (const double eta : {0.25, 0.0, 0.25}) {
    rank->member.learning_rate(eta);
    rank->member.finish(0);
    for (std::size_t e = 0; e < layout.size(); ++e)
      rank->replica.values.span()[e] -= static_cast<float>(eta) * rank->replica.gradients.span()[e];
    rank->member.stepped(0);
    std::ranges::fill(rank->replica.gradients.span(), 2.0F);
  }
  // m̂ = 1 after the first step and the second; g = 2 + m̂/2 in the third, and x = 1 − (2 + 2.5)/4.
  for (const float x : rank->replica.values.span()) CHECK(x == -0.125F);
}

}  // namespace
}  // namespace hearsay::quasi_global_momentum_test

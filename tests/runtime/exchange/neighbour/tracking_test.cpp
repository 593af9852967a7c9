// The laws of gradient and momentum tracking.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"

namespace hearsay::tracking_test {
namespace {

using namespace test;

constexpr const char* gradient_tracking = "exchange: {name: gradient_tracking}\n";
constexpr const char* complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";

std::string momentum_tracking(double momentum) {
  return "exchange: {name: momentum_tracking, momentum: " + std::to_string(momentum) + "}\n";
}

/// Σ y_i against Σ u_i, u ← β u + g, both exact: weights and β are 1/2 or 1/4, and multiples of 512 have room for that.
void check_sums(const std::string& yaml, int ranks, double momentum) {
  CAPTURE(yaml);
  CAPTURE(ranks);
  constexpr int unit = 512;
  const Layout layout = reference::small_layout();
  Stepwise job(yaml, layout, ranks, [](int, std::span<float>) {});
  std::vector<double> velocities(layout.size());
  std::vector<float> first;
  for (Iteration k = 0; k < 4; ++k) {
    for (double& u : velocities) u *= momentum;
    job.exchange(k, 0.0, [&](int rank, std::span<float> g) {
      whole_numbers(rank, k, unit, g);
      for (std::size_t e = 0; e < g.size(); ++e) velocities[e] += g[e];
    });
    CHECK(job.sum_of_g() == velocities);
    job.step(k, 0.0);
  }
}

TEST_CASE("trackers sum to the gradients, or to the momenta, exactly") {
  for (const int ranks : {1, 2, 4}) {
    check_sums(std::string(complete) + gradient_tracking, ranks, 0.0);
    check_sums(complete + momentum_tracking(0.5), ranks, 0.5);
  }
  for (const int ranks : {2, 3, 4, 8}) {  // on a graph that changes, too
    check_sums(one_peer + gradient_tracking, ranks, 0.0);
    check_sums(one_peer + momentum_tracking(0.5), ranks, 0.5);
  }
}

TEST_CASE("where ranks have unlike data, trackers lead all to the minimum of the sum, and dpsgd does not" *
          doctest::test_suite("arithmetic")) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const int ranks : {3, 5, 8}) {
    const Unlike problem(ranks, layout.size());
    const auto distance = [&](const std::string& topology, const std::string& exchange) {
      return problem.distance(train_locally(topology + exchange, layout, initial, problem,
                                            {.ranks = ranks, .descent = {.learning_rate = 0.05}, .iterations = 1000}));
    };
    CAPTURE(ranks);
    JobOutcome untrained;
    untrained.ranks.emplace_back().x = initial;
    const double start = problem.distance(untrained);
    for (const std::string& topology : {std::string(ring), one_peer}) {
      CAPTURE(topology);
      CHECK(distance(topology, gradient_tracking) < 1e-4 * start);
      CHECK(distance(topology, momentum_tracking(0.5)) < 1e-4 * start);
    }
    if (ranks > 3) CHECK(distance(ring, dpsgd) > 0.01 * start);  // three on a ring are complete
  }
}

TEST_CASE("one rank alone steps along its gradient, or along its momentum, and sends nothing") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  for (const double momentum : {0.0, 0.9}) {
    std::vector<float> x = problem.initial(), g(x.size()), u(x.size());
    for (Iteration k = 0; k < 60; ++k) {
      problem.gradient(0, k, x, g);
      for (std::size_t e = 0; e < x.size(); ++e) {
        u[e] = static_cast<float>(momentum) * u[e] + g[e];
        x[e] -= 0.05F * u[e];
      }
    }
    for (const std::string& exchange : {std::string(gradient_tracking), momentum_tracking(momentum)}) {
      if (momentum != 0.0 && exchange == gradient_tracking) continue;
      const JobOutcome alone = train_locally(ring + exchange, layout, problem.initial(), problem,
                                             {.ranks = 1, .descent = {.learning_rate = 0.05}, .iterations = 60});
      for (std::size_t e = 0; e < x.size(); ++e)
        CHECK(alone.ranks[0].x[e] == doctest::Approx(x[e]).epsilon(1e-4).scale(0.1));
      CHECK(alone.totals().bytes() == 0);
    }
  }
}

TEST_CASE("momentum tracking without momentum is gradient tracking, to the last bit") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 5}) {
    const reference::Quadratic problem(layout, ranks, 3);
    const auto train = [&](const std::string& exchange) {
      return train_locally(ring + exchange, layout, problem.initial(), problem, {.ranks = ranks});
    };
    const JobOutcome a = train(momentum_tracking(0.0)), b = train(gradient_tracking);
    for (std::size_t r = 0; r < a.ranks.size(); ++r) CHECK(a.ranks[r].x == b.ranks[r].x);
  }
}

TEST_CASE("trackers travel with their segments: the messages of dpsgd with twice the values") {
  const Layout layout = reference::small_layout();
  for (const auto& graph : graph_choices()) {
    const reference::Quadratic problem(layout, 5, 3);
    const auto train = [&](const std::string& exchange) {
      return train_locally(graph.yaml + exchange, layout, problem.initial(), problem, {.ranks = 5});
    };
    const JobOutcome baseline = train(dpsgd);
    for (const std::string& exchange : {std::string(gradient_tracking), momentum_tracking(0.9)}) {
      const JobOutcome job = train(exchange);
      CHECK(job.totals().events == baseline.totals().events);
      CHECK(job.totals().messages == baseline.totals().messages);
      CHECK(job.totals().payload_bytes == 2 * baseline.totals().payload_bytes);
      CHECK(job.totals().header_bytes == baseline.totals().header_bytes);
      for (std::size_t r = 0; r < job.ranks.size(); ++r) {
        CHECK(job.ranks[r].segment_messages == baseline.ranks[r].segment_messages);
        for (std::size_t s = 0; s < layout.count(); ++s)
          CHECK(job.ranks[r].segment_payload_bytes[s] == 2 * baseline.ranks[r].segment_payload_bytes[s]);
      }
    }
  }
}

TEST_CASE("asynchronous trackers are refused with the reason, a delay as an unknown key") {
  for (const std::string name : {"gradient_tracking", "momentum_tracking"}) {
    const auto refusal = [&](const std::string& key) {
      try {
        const Plan plan("exchange: {name: " + name + ", " + key + "}");
      } catch (const ConfigError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    CHECK(refusal("schedule: asynchronous").find("no longer sum to the") != std::string::npos);
    CHECK(refusal("delay: 1").find("unknown key") != std::string::npos);
    CHECK(refusal("schedule: lockstep").empty());
  }
}

}  // namespace
}  // namespace hearsay::tracking_test

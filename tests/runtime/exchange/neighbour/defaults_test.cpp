// The settings that nobody has chosen are stable.
#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::defaults_test {
namespace {

using namespace test;

bool takes(const std::string& yaml, int ranks) {
  try {
    static_cast<void>(Plan(yaml).topology(ranks));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// What a run has come to.
struct Extent {
  double consensus_early = 0.0, consensus_late = 0.0;  ///< the largest sqrt(Σ_i ‖x_i − mean‖² / P) of each half
  double largest = 0.0;                                ///< |x| at all
};

/// (ranks, iterations, values): x after every step.
using Ways = std::vector<std::vector<std::vector<float>>>;

Ways ways_of(const std::string& yaml, int ranks, double step, Iteration iterations) {
  const double learning_rate = step / 1.5;  // curvatures are up to that
  const Layout layout = reference::small_layout();
  const Unlike problem(ranks, layout.size());
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(ranks);
  Ways ways(static_cast<std::size_t>(ranks));
  const LocalJob job{.topology = topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = plan.exchange(),
                     .step = {.learning_rate = learning_rate}};
  run_local_ranks(job, [&](LocalRank& rank) {
    RankTrainer trainer(rank.member, problem, {.learning_rate = learning_rate});
    for (Iteration k = 0; k < iterations; ++k) {
      trainer.start(k);
      trainer.finish(k);
      const auto x = rank.replica.values.span();
      ways[static_cast<std::size_t>(rank.rank())].emplace_back(x.begin(), x.end());
    }
  });
  return ways;
}

Extent extent_of(const Ways& ways) {
  Extent extent;
  const std::size_t iterations = ways[0].size(), values = ways[0][0].size();
  const auto ranks = static_cast<double>(ways.size());
  for (std::size_t k = 0; k < iterations; ++k) {
    double squares = 0.0;
    for (std::size_t e = 0; e < values; ++e) {
      double mean = 0.0;
      for (const auto& way : ways) mean += way[k][e] / ranks;
      for (const auto& way : ways) {
        squares += (way[k][e] - mean) * (way[k][e] - mean) / ranks;
        const double size = std::abs(way[k][e]);
        extent.largest = std::max(extent.largest, std::isfinite(size) ? size : HUGE_VAL);
      }
    }
    double& half = k < iterations / 2 ? extent.consensus_early : extent.consensus_late;
    half = std::max(half, std::sqrt(squares));
  }
  return extent;
}

// Optima are within [−1, 3]. A rank alone stands ηh < 2.
TEST_CASE(
    "default settings of every exchange along a graph are stable at steps of half the inverse curvature, or 0.9 "
    "of the bound where that is less" *
    doctest::test_suite("arithmetic")) {
  for (const ExchangeEntry& exchange : exchanges()) {
    for (const std::string more : {"", ", delay: 1"}) {
      for (const std::string graph : {"ring", "star", "complete"}) {
        for (const int ranks : {2, 5, 8}) {
          const std::string yaml =
              "topology: {graph: {name: " + graph + "}}\nexchange: {name: " + std::string(exchange.name) + more + "}\n";
          Config root = Config::from_text(yaml);
          Config section = root.section("exchange");
          const auto plan = exchange.make(section, root);
          if (!plan->laws().along_graph || !takes(yaml, ranks)) continue;
          const auto known = plan->stability(Plan(yaml).topology(ranks), {.learning_rate = 1.0});
          const double step = known ? std::min(0.5, 0.9 * known->most_step) : 0.5;
          const Extent extent = extent_of(ways_of(yaml, ranks, step, 500));
          CAPTURE(yaml);
          CAPTURE(ranks);
          CAPTURE(step);
          CAPTURE(stability_text(known));
          CAPTURE(extent.consensus_early);
          CAPTURE(extent.consensus_late);
          CHECK(extent.largest < 30.0);
          CHECK(extent.consensus_late <= 1.02 * extent.consensus_early);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearsay::defaults_test

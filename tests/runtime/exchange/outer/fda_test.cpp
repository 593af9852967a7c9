// The laws of FDA: the variance of the models never stays above the threshold, and nothing travels below it.
#include <cmath>

#include "base/error.hpp"
#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::fda_test {
namespace {

using namespace test;

std::string fda(const std::string& keys) { return everybody + ("exchange: {name: fda, " + keys + "}\n"); }

double variance(const JobOutcome& job) {
  const std::vector<double> mean = mean_of(job);
  double sum = 0.0;
  for (const RankOutcome& rank : job.ranks)
    for (std::size_t e = 0; e < mean.size(); ++e)
      sum += std::pow(static_cast<double>(rank.x[e]) - mean[e], 2) / static_cast<double>(job.ranks.size());
  return sum;
}

std::uint64_t averages_of(const JobOutcome& job) {
  return job.totals().events / reference::small_layout().count() / job.ranks.size();
}

/// The algorithm in double, with the gradients of `Given` by steps of 1/8 from 0: the mean, and how often it averages.
struct Simulated {
  std::vector<double> mean;
  std::uint64_t averages = 0, averages_by_lengths_alone = 0;
};
Simulated simulated(int ranks, Iteration iterations, double threshold) {
  const std::size_t n = reference::small_layout().size();
  const auto p = static_cast<double>(ranks);
  const Given given;
  std::vector<std::vector<double>> x(static_cast<std::size_t>(ranks), std::vector<double>(n));
  std::vector<double> phi(n), xi(n);
  std::vector<float> g(n);
  Simulated result;
  for (Iteration k = 0; k < iterations; ++k) {
    double square = 0.0, along = 0.0;
    std::vector<double> d(n);
    for (int r = 0; r < ranks; ++r) {
      given.gradient(r, k, {}, g);
      for (std::size_t e = 0; e < n; ++e) {
        double& value = x[static_cast<std::size_t>(r)][e];
        value -= 0.125 * static_cast<double>(g[e]);
        const double difference = phi[e] - value;
        square += difference * difference / p;
        along += xi[e] * difference / p;
        d[e] += difference / p;
      }
    }
    if (square > threshold) ++result.averages_by_lengths_alone;
    if (square - along * along <= threshold) continue;
    ++result.averages;
    double length = 0.0;
    for (const double value : d) length += value * value;
    for (std::size_t e = 0; e < n; ++e) {
      xi[e] = d[e] / std::sqrt(length);
      phi[e] -= d[e];
      for (auto& of_rank : x) of_rank[e] = phi[e];
    }
  }
  result.mean.assign(n, 0.0);
  for (const auto& of_rank : x)
    for (std::size_t e = 0; e < n; ++e) result.mean[e] += of_rank[e] / p;
  return result;
}

TEST_CASE("with threshold 0 it is diloco with one local step, bit for bit") {
  for (const int ranks : {2, 3, 5}) {
    for (const std::string outer :
         {"outer: {learning_rate: 1, momentum: 0}", "outer: {learning_rate: 0.7, momentum: 0.9}"}) {
      const JobOutcome always = train_given(fda("threshold: 0, " + outer), ranks, 20);
      const JobOutcome diloco =
          train_given(everybody + "exchange: {name: diloco, local_steps: 1, " + outer + "}\n", ranks, 20);
      CHECK(always.hashes() == diloco.hashes());
      CHECK(averages_of(always) == 20);
    }
  }
}

TEST_CASE("below the threshold ranks tell 16 bytes and nothing else, and above it no variance stays") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {2, 4, 5}) {
    CAPTURE(ranks);
    const JobOutcome never = train_given(fda("threshold: 1e12"), ranks, 10);
    CHECK(averages_of(never) == 0);
    const auto others = static_cast<std::uint64_t>(ranks * (ranks - 1));
    CHECK(never.totals().payload_bytes == 10 * others * 16);
    check_close(mean_of(never), mean_way(ranks, layout.size(), 10, 1000, 1.0, 0.0, false), 1e-4);
    const double one_step = variance(train_given(fda("threshold: 1e12"), ranks, 1));
    const double threshold = 2.7 * one_step;
    double most = 0.0;
    for (Iteration k = 1; k <= 16; ++k) {
      const double now = variance(train_given(fda("threshold: " + std::to_string(threshold)), ranks, k));
      CHECK(now <= threshold * (1.0 + 1e-6));
      most = std::max(most, now);
    }
    CHECK(most > 0.5 * one_step);
  }
}

// ξ takes off the variance's bound what all ranks have gone together: without it there are more averages.
TEST_CASE("it averages when the simulation in double does, and the mean goes where the gradients' does") {
  for (const int ranks : {2, 4}) {
    for (const double threshold : {150.0, 400.0, 900.0}) {
      CAPTURE(ranks);
      CAPTURE(threshold);
      const Simulated expected = simulated(ranks, 60, threshold);
      const JobOutcome job = train_given(fda("threshold: " + std::to_string(threshold)), ranks, 60);
      CHECK(averages_of(job) == expected.averages);
      CHECK(expected.averages > 0);
      CHECK(expected.averages < 60);
      check_close(mean_of(job), expected.mean, 1e-3);
      check_close(mean_of(job), mean_way(ranks, job.ranks[0].x.size(), 60, 1000, 1.0, 0.0, false), 1e-3);
    }
  }
}

TEST_CASE("the formula has the bytes of an iteration with and without an average") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {2, 4, 5}) {
    for (const double often : {0.0, 1.0}) {
      const std::string yaml = fda(often == 0.0 ? "threshold: 1e12" : "threshold: 0");
      const auto cost = Plan(yaml).exchange().cost(layout, Plan(yaml).topology(ranks), {.event_fraction = often});
      const LedgerTotals sent = train_given(yaml, ranks, 5).totals();
      CHECK(5 * ranks * cost->sent_bytes == doctest::Approx(static_cast<double>(sent.bytes())));
    }
  }
}

TEST_CASE("settings are checked, and a model that is not finite names its tensor") {
  CHECK(said_of(alone(fda("schedule: asynchronous"))).find("take gossip_outer") != std::string::npos);
  CHECK(said_of(alone(fda("threshold: -1"))).find("exchange.threshold") != std::string::npos);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  CHECK_THROWS_WITH_AS(train_locally(fda("threshold: 1"), layout, initial, ZeroGradient(),
                                     {.ranks = 2,
                                      .run = Ranks::threads,
                                      .prepare = [](LocalRank& rank) { rank.replica.values.span()[75] = NAN; }}),
                       doctest::Contains("outer difference of parameter 'embedding'"), DivergenceError);
}

}  // namespace
}  // namespace hearsay::fda_test

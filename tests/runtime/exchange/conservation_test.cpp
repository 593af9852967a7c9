// What mixing alone keeps and what it shrinks, the gradients being zero.
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::conservation_test {
namespace {

using namespace test;

/// Gives rank r small integers of its own that are multiples of `unit`.
std::function<void(LocalRank&)> integers(int unit) {
  return [unit](LocalRank& rank) {
    Random random(stream_seed(5, "start", static_cast<std::uint64_t>(rank.rank())));
    for (float& v : rank.replica.values.span()) {
      v = static_cast<float>(unit * (static_cast<int>(random.below(2001)) - 1000));
    }
  };
}

std::vector<double> sum_over_ranks(const JobOutcome& job) {
  std::vector<double> sum(job.ranks.front().x.size());
  for (const RankOutcome& rank : job.ranks) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rank.x[e];
  }
  return sum;
}

double consensus_distance(const JobOutcome& job) {
  const std::vector<double> sum = sum_over_ranks(job);
  double squares = 0.0;
  for (const RankOutcome& rank : job.ranks) {
    for (std::size_t e = 0; e < sum.size(); ++e) {
      squares += std::pow(rank.x[e] - sum[e] / static_cast<double>(job.ranks.size()), 2);
    }
  }
  return std::sqrt(squares);
}

/// Mixes only, from integer replicas.
JobOutcome mix(const std::string& yaml, int ranks, Iteration iterations, int unit) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const ZeroGradient none;
  return train_locally(yaml, layout, initial, none,
                       {.ranks = ranks,
                        .descent = {.learning_rate = 0.0},
                        .iterations = iterations,
                        .run = Ranks::threads,  // sums over all ranks wait for all of them
                        .prepare = integers(unit)});
}

constexpr const char* complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";
/// Some segments fire at some iterations on some ranks: the norms of the ranks differ.
constexpr const char* sometimes =
    "trigger: {name: geometric, scale: 2e6, ratio: 0.6, measure: norm, warmup_iterations: 0}\n";

std::size_t events_of(const JobOutcome& job) { return static_cast<std::size_t>(job.totals().events); }

// w_ij = 1/2 or 1/4 and γ = 1/2: a step divides by 8 at most, so multiples of 512 up to 512000 become multiples of 1/8
// in four steps, and 24 bits hold all of them exactly.
TEST_CASE("difference and arrival keep the sum over ranks exactly, for any pattern of events") {
  constexpr Iteration steps = 4;
  constexpr int unit = 512;
  for (const char* mixing : {"{name: difference, gamma: 0.5}", "{name: arrival}"}) {
    for (const auto& sparsify : sparsify_choices()) {
      for (const int ranks : {2, 4}) {
        const std::string yaml = complete + eventgrad(mixing) + sometimes + sparsify.yaml;
        CAPTURE(yaml);
        CAPTURE(ranks);
        const JobOutcome before = mix(yaml, ranks, 0, unit);
        const JobOutcome after = mix(yaml, ranks, steps, unit);
        const std::size_t possible = static_cast<std::size_t>(ranks) * 4 * steps;
        CHECK(events_of(after) > 0);
        CHECK(events_of(after) < possible);
        CHECK(after.hashes() != before.hashes());
        CHECK(sum_over_ranks(after) == sum_over_ranks(before));
      }
    }
  }
}

TEST_CASE("difference and arrival keep the mean to rounding on every graph") {
  for (const char* mixing : {"{name: difference, gamma: 0.3}", "{name: arrival}"}) {
    for (const auto& graph : graph_choices()) {
      const std::string yaml = graph.yaml + eventgrad(mixing) + sometimes;
      CAPTURE(yaml);
      const auto before = sum_over_ranks(mix(yaml, 5, 0, 512));
      const auto after = sum_over_ranks(mix(yaml, 5, 60, 512));
      for (std::size_t e = 0; e < before.size(); ++e) CHECK(std::abs(after[e] - before[e]) <= 5 * 512000 * 1e-6);
    }
  }
}

TEST_CASE("the rule of who asks for none keeps the mean, whatever the schedule and the delay") {
  for (const std::string more : {"", ", delay: 1", ", copies: edge", ", schedule: asynchronous"}) {
    CAPTURE(more);
    Config root = Config::from_text("exchange: {name: eventgrad" + more + "}\n");
    CHECK(plan_exchange(root)->laws().keeps_mass);
    root.document().throw_if_invalid();
  }
}

TEST_CASE("stale mixing does not keep the mean when segments stay silent") {
  const std::string yaml = complete + eventgrad("{name: stale}") + sometimes;
  CHECK(sum_over_ranks(mix(yaml, 4, 4, 512)) != sum_over_ranks(mix(yaml, 4, 0, 512)));
}

TEST_CASE("what says that it keeps the mean of the models keeps it, to rounding, on every graph") {
  int kept = 0;
  for (const ExchangeEntry& entry : exchanges()) {
    const std::string exchange = "exchange: {name: " + std::string(entry.name) + "}\n";
    Config root = Config::from_text(exchange);
    const ExchangeLaws laws = plan_exchange(root)->laws();
    if (laws.mixes != ExchangeLaws::Mixes::models || !laws.keeps_mass) continue;
    ++kept;
    for (const auto& graph : graph_choices()) {
      CAPTURE(entry.name);
      CAPTURE(graph.yaml);
      const auto before = sum_over_ranks(mix(graph.yaml + exchange, 5, 0, 512));
      const auto after = sum_over_ranks(mix(graph.yaml + exchange, 5, 60, 512));
      // What cedas rounds in d moves x in every later iteration as well.
      const double rounding = entry.name == "cedas" ? 6e-6 : 2e-6;
      for (std::size_t e = 0; e < before.size(); ++e) CHECK(std::abs(after[e] - before[e]) <= 5 * 512000 * rounding);
    }
  }
  CHECK(kept >= 4);
}

TEST_CASE("dpsgd keeps the mean and contracts at the rate of the spectral gap") {
  for (const auto& graph : graph_choices()) {
    for (const int ranks : {2, 3, 4, 5, 8}) {
      CAPTURE(graph.yaml);
      CAPTURE(ranks);
      const std::string yaml = graph.yaml + dpsgd;
      const double contraction = Plan(yaml).topology(ranks).spectrum().contraction;
      std::vector<double> distances;
      for (Iteration k = 0; k <= 12; ++k) distances.push_back(consensus_distance(mix(yaml, ranks, k, 1)));
      const double rounding = 1e-6 * distances.front();
      for (std::size_t k = 1; k < distances.size(); ++k) {
        CHECK(distances[k] <= contraction * distances[k - 1] + rounding);
      }
      // Random replicas have a part along the slowest eigenvector, so in the end the rate is met.
      if (contraction > 0.5) CHECK(distances[12] >= 0.95 * contraction * distances[11]);
    }
  }
}

}  // namespace
}  // namespace hearsay::conservation_test

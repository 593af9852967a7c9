// The laws of SPARTA: what it averages is the same on all ranks, nothing else moves, and the mean stays.
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::sparta_test {
namespace {

using namespace test;

std::string sparta(const std::string& keys) { return everybody + ("exchange: {name: sparta, " + keys + "}\n"); }

/// Averages only, from whole numbers of their own that are multiples of 2¹⁰.
JobOutcome average(const std::string& yaml, int ranks, Iteration iterations) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  return train_locally(
      yaml, layout, initial, ZeroGradient(),
      {.ranks = ranks,
       .descent = {.learning_rate = 0.0},
       .iterations = iterations,
       .run = Ranks::threads,
       .prepare = [](LocalRank& rank) { whole_numbers(rank.rank(), 0, 1 << 10, rank.replica.values.span()); }});
}

std::set<std::size_t> moved(const JobOutcome& before, const JobOutcome& after, std::size_t rank) {
  std::set<std::size_t> positions;
  for (std::size_t e = 0; e < before.ranks[rank].x.size(); ++e)
    if (before.ranks[rank].x[e] != after.ranks[rank].x[e]) positions.insert(e);
  return positions;
}

TEST_CASE("k coordinates become their mean on all ranks, exactly, and the others stay") {
  constexpr std::size_t kept = 37;  // a tenth of 372
  for (const int ranks : {2, 4}) {
    const JobOutcome before = average(sparta("density: 0.1"), ranks, 0),
                     after = average(sparta("density: 0.1"), ranks, 1);
    const std::vector<double> mean = mean_of(before);
    std::size_t averaged = 0;
    for (std::size_t e = 0; e < mean.size(); ++e) {
      const bool all = std::ranges::all_of(after.ranks, [&](const RankOutcome& rank) { return rank.x[e] == mean[e]; });
      const bool none = std::ranges::all_of(before.ranks, [&](const RankOutcome& rank) {
        return rank.x[e] == after.ranks[&rank - before.ranks.data()].x[e];
      });
      CHECK((all || none));
      averaged += all ? 1 : 0;
    }
    CHECK(averaged >= kept);  // some were equal before
    CHECK(averaged < 2 * kept);
    CHECK(mean_of(after) == mean);
    CHECK(after.totals().payload_bytes == static_cast<std::uint64_t>(2 * (ranks - 1)) * 4 * kept);
  }
}

TEST_CASE("other iterations and other seeds draw other coordinates, and in time all are averaged") {
  const auto first = [](const std::string& keys, Iteration until) {
    return moved(average(sparta(keys), 2, until - 1), average(sparta(keys), 2, until), 0);
  };
  CHECK(first("density: 0.1", 1) != first("density: 0.1", 2));
  CHECK(first("density: 0.1", 1) != first("density: 0.1, seed: 3", 1));
  CHECK(first("density: 0.1", 1) == first("density: 0.1", 1));
  const JobOutcome late = average(sparta("density: 0.2"), 3, 100);
  for (const RankOutcome& rank : late.ranks) CHECK(rank.hash == late.ranks[0].hash);
}

TEST_CASE("with all coordinates it is dpsgd on a complete graph, to rounding") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 3, 5}) {
    const reference::Quadratic problem(layout, ranks, 3);
    const auto run = [&](const std::string& yaml) {
      return train_locally(yaml, layout, problem.initial(), problem, {.ranks = ranks, .run = Ranks::threads});
    };
    const JobOutcome all = run(sparta("density: 1")), dense = run(everybody + dpsgd);
    for (std::size_t r = 0; r < all.ranks.size(); ++r)
      for (std::size_t e = 0; e < layout.size(); ++e)
        CHECK(all.ranks[r].x[e] == doctest::Approx(dense.ranks[r].x[e]).epsilon(1e-4).scale(1.0));
  }
}

TEST_CASE("the mean of the models goes where the mean of the gradients says") {
  for (const int ranks : {2, 5}) {
    const JobOutcome job = train_given(sparta("density: 0.05"), ranks, 40);
    check_close(mean_of(job), mean_way(ranks, job.ranks[0].x.size(), 40, 1000, 1.0, 0.0, false), 2e-4);
  }
}

TEST_CASE("a value that is not finite is an error that names its tensor, and settings are checked") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  CHECK_THROWS_WITH_AS(train_locally(sparta("density: 1"), layout, initial, ZeroGradient(),
                                     {.ranks = 2,
                                      .run = Ranks::threads,
                                      .prepare = [](LocalRank& rank) { rank.replica.values.span()[75] = NAN; }}),
                       doctest::Contains("value of parameter 'embedding'"), DivergenceError);
  CHECK(said_of(alone(sparta("schedule: asynchronous"))).find("take gossip_outer") != std::string::npos);
  CHECK(said_of(alone(sparta("density: 0"))).find("exchange.density") != std::string::npos);
}

}  // namespace
}  // namespace hearsay::sparta_test

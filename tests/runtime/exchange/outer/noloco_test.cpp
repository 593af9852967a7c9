// The laws of NoLoCo: pairs, what they keep and what they do to the mean.
#include <algorithm>
#include <set>

#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::noloco_test {
namespace {

using namespace test;

std::string noloco(const std::string& keys) { return everybody + ("exchange: {name: noloco, " + keys + "}\n"); }
constexpr const char* plain_outer = "outer: {learning_rate: 1, momentum: 0}";

/// The ranks that have the same model as rank r, itself included.
std::vector<std::set<int>> who_agrees(const JobOutcome& job) {
  std::vector<std::set<int>> same(job.ranks.size());
  for (std::size_t a = 0; a < job.ranks.size(); ++a)
    for (std::size_t b = 0; b < job.ranks.size(); ++b)
      if (job.ranks[a].hash == job.ranks[b].hash) same[a].insert(static_cast<int>(b));
  return same;
}

// With whole numbers and halves of them everything is exact.
TEST_CASE("a plain round keeps the sum exactly, and leaves pairs that agree, other ones in other rounds") {
  for (const int ranks : {2, 3, 6, 7}) {
    CAPTURE(ranks);
    std::set<std::vector<std::set<int>>> pairings;
    for (const Iteration rounds : {1, 2, 3, 4, 5}) {
      const JobOutcome job = train_given(noloco(std::string("local_steps: 3, ") + plain_outer), ranks, 3 * rounds);
      const JobOutcome apart = train_given(noloco("local_steps: 1000"), ranks, 3 * rounds);
      std::vector<double> sum(job.ranks[0].x.size()), expected(sum.size());
      for (std::size_t r = 0; r < job.ranks.size(); ++r)
        for (std::size_t e = 0; e < sum.size(); ++e) {
          sum[e] += static_cast<double>(job.ranks[r].x[e]);
          expected[e] += static_cast<double>(apart.ranks[r].x[e]);
        }
      CHECK(sum == expected);
      const auto same = who_agrees(job);
      CHECK(std::ranges::count_if(same, [](const auto& group) { return group.size() == 2; }) == ranks / 2 * 2);
      CHECK(std::ranges::count_if(same, [](const auto& group) { return group.size() == 1; }) == ranks % 2);
      pairings.insert(same);
    }
    if (ranks > 2) CHECK(pairings.size() > 1);
  }
}

TEST_CASE("the mean of the models takes DiLoCo's outer step with heavy-ball momentum, whoever meets whom") {
  for (const int ranks : {1, 2, 5, 8}) {  // alone: Lookahead
    for (const std::string keys : {"", "consensus: 0.3, ", "consensus: 1.2, pairs_seed: 9, "}) {
      CAPTURE(ranks);
      CAPTURE(keys);
      const JobOutcome job =
          train_given(noloco(keys + "local_steps: 4, outer: {learning_rate: 0.7, momentum: 0.5}"), ranks, 48);
      check_close(mean_of(job), mean_way(ranks, job.ranks[0].x.size(), 48, 4, 0.7, 0.5, false), 2e-4);
    }
  }
}

TEST_CASE("two blocks say what one says where the two rates are the same") {
  const std::string keys = "local_steps: 4, outer: {learning_rate: 0.75, momentum: 0.5}";
  const JobOutcome one = train_given(noloco(keys), 4, 40),
                   two = train_given(noloco(keys + ", consensus: 0.7500001"), 4, 40);
  for (std::size_t r = 0; r < one.ranks.size(); ++r)
    for (std::size_t e = 0; e < one.ranks[r].x.size(); ++e)
      CHECK(one.ranks[r].x[e] == doctest::Approx(two.ranks[r].x[e]).epsilon(1e-4).scale(1.0));
  CHECK(2 * one.totals().payload_bytes == two.totals().payload_bytes);
}

// δ_i − δ_j = γ (φ_j − φ_i) within a pair: what their local steps have made is the same for both.
TEST_CASE("a round brings a pair nearer by what consensus says, wherever it goes") {
  constexpr int ranks = 6;
  for (const double gamma : {0.25, 0.75, 1.5}) {
    CAPTURE(gamma);
    const std::string yaml =
        noloco("local_steps: 2, outer: {learning_rate: 0.75, momentum: 0}, consensus: " + std::to_string(gamma));
    const JobOutcome before = train_given(yaml, ranks, 6), after = train_given(yaml, ranks, 8);
    for (std::size_t i = 0; i < ranks; ++i) {
      int partners = 0;
      for (std::size_t j = 0; j < ranks; ++j) {
        double worst = 0.0, apart = 0.0;
        for (std::size_t e = 0; e < before.ranks[i].x.size(); ++e) {
          const double then = static_cast<double>(before.ranks[i].x[e]) - before.ranks[j].x[e];
          const double now = static_cast<double>(after.ranks[i].x[e]) - after.ranks[j].x[e];
          worst = std::max(worst, std::abs(now - (1.0 - gamma) * then));
          apart = std::max(apart, std::abs(then));
        }
        if (i != j && apart > 1e-3 && worst < 1e-5) ++partners;
      }
      CHECK(partners == 1);
    }
  }
}

TEST_CASE("models come together though each meets one other at a time") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const auto spread = [&](Iteration rounds) {
    const JobOutcome job = train_locally(
        noloco("local_steps: 1"), layout, initial, ZeroGradient(),
        {.ranks = 8,
         .descent = {.learning_rate = 0.0},
         .iterations = rounds,
         .run = Ranks::threads,
         .prepare = [](LocalRank& rank) { whole_numbers(rank.rank(), 0, 1, rank.replica.values.span()); }});
    const auto mean = mean_of(job);
    double worst = 0.0;
    for (const RankOutcome& rank : job.ranks)
      for (std::size_t e = 0; e < mean.size(); ++e) worst = std::max(worst, std::abs(rank.x[e] - mean[e]));
    return worst;
  };
  CHECK(spread(60) < 1e-2 * spread(1));
}

TEST_CASE("a round has one message a rank, of the whole model") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {2, 5, 8}) {
    const std::string yaml = noloco("local_steps: 4");
    const JobOutcome job = train_given(yaml, ranks, 20);
    const auto sent = static_cast<std::uint64_t>(5 * (ranks / 2 * 2)) * 4 * layout.size();
    CHECK(job.totals().payload_bytes == sent);
    const auto cost = Plan(yaml).exchange().cost(layout, Plan(yaml).topology(ranks), {});
    CHECK(20 * ranks * cost->sent_bytes == doctest::Approx(static_cast<double>(sent)));
  }
  CHECK(train_given(noloco("local_steps: 4"), 1, 20).totals().bytes() == 0);
  CHECK(said_of(alone(noloco("schedule: asynchronous"))).find("take gossip_outer") != std::string::npos);
  CHECK(!Plan(noloco("consensus: 2.4")).exchange().warnings(Plan(noloco("local_steps: 2")).topology(2)).empty());
}

}  // namespace
}  // namespace hearsay::noloco_test

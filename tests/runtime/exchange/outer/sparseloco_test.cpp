// The laws of SparseLoCo: it is DiLoCo where everything travels, and owes what it has not sent.
#include <algorithm>
#include <numeric>

#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::sparseloco_test {
namespace {

using namespace test;

std::string sparseloco(const std::string& keys, const std::string& selector, const std::string& quantiser = "none") {
  return everybody + "exchange: {name: sparseloco, " + keys + "}\nsparsify: {selector: " + selector +
         ", quantiser: {name: " + quantiser + "}}\n";
}

TEST_CASE("where everything travels it is DiLoCo, to rounding") {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::string outer :
         {"outer: {learning_rate: 1, momentum: 0}", "outer: {learning_rate: 0.7, momentum: 0.9}"}) {
      const JobOutcome sparse =
          train_given(sparseloco("local_steps: 4, " + outer, "{name: topk, density: 1}"), ranks, 40);
      const JobOutcome dense =
          train_given(everybody + "exchange: {name: diloco, local_steps: 4, " + outer + "}\n", ranks, 40);
      check_close(mean_of(sparse), mean_of(dense), 2e-4);
      for (const RankOutcome& rank : sparse.ranks) CHECK(rank.hash == sparse.ranks[0].hash);
    }
  }
}

// Multiples of the number of ranks: a mean is a whole number, so everything is exact.
TEST_CASE("what is applied and what is owed are together what the local steps have made, exactly") {
  constexpr Iteration iterations = 15;
  for (const int ranks : {1, 2, 3, 5, 6, 7, 8}) {
    for (const std::string selector : {"{name: topk, density: 0.1}", "{name: topk, density: 0.3, scope: per_segment}",
                                       "{name: random, density: 0.2}", "{name: chunked, density: 0.1}",
                                       "{name: chunked, density: 0.3, scope: per_segment}"}) {
      CAPTURE(ranks);
      CAPTURE(selector);
      const Account sparse = account(sparseloco("local_steps: 3", selector), ranks, iterations, ranks);
      const std::vector<double> made = made_by_all(ranks, iterations, ranks, sparse.x.size());
      double owed = 0.0;
      for (std::size_t e = 0; e < made.size(); ++e) {
        CHECK(sparse.owed[e] - ranks * sparse.x[e] == made[e]);
        owed += std::abs(sparse.owed[e]);
      }
      CHECK(owed > 0.0);
    }
  }
}

// Levels of 12 bits are no whole numbers, so sums of several of them round.
TEST_CASE("what two bits leave out is owed, to rounding") {
  constexpr Iteration iterations = 15;
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::string selector : {"{name: chunked, density: 0.3, scope: per_segment}", "{name: dense}"}) {
      CAPTURE(ranks);
      CAPTURE(selector);
      const Account sparse = account(sparseloco("local_steps: 3", selector, "two_bit"), ranks, iterations);
      const std::vector<double> made = made_by_all(ranks, iterations, 1, sparse.x.size());
      double owed = 0.0, worst = 0.0;
      for (std::size_t e = 0; e < made.size(); ++e) {
        worst = std::max(worst, std::abs(sparse.owed[e] - ranks * sparse.x[e] - made[e]));
        owed = std::max(owed, std::abs(sparse.owed[e]));
      }
      CHECK(worst < 1e-3);
      CHECK(owed > 1.0);
    }
  }
}

TEST_CASE("a round sends k values of every rank to every other one") {
  constexpr std::uint64_t rounds = 3, others = 3, kept = 37;  // a tenth of 372
  const Account tenth = account(sparseloco("local_steps: 3", "{name: topk, density: 0.1}"), 4, 9);
  CHECK(tenth.payload_bytes == rounds * 4 * others * kept * 4);
  CHECK(said_of(alone(sparseloco("schedule: asynchronous", "{name: topk}"))).find("take gossip_outer") !=
        std::string::npos);
}

/// What rank r's three local steps have made: Σ g.
std::vector<double> made_by(int rank, std::size_t n) {
  std::vector<double> made(n);
  std::vector<float> g(n);
  for (Iteration k = 0; k < 3; ++k) {
    whole_numbers(rank, k, 1, g);
    for (std::size_t e = 0; e < n; ++e) made[e] += static_cast<double>(g[e]);
  }
  return made;
}

// r_t = β r_(t − 1) + D_t − v_t: what is neither applied nor owed is (1 − β) times what was owed before. Halves: exact.
TEST_CASE("a residual that decays loses that part of what is owed, a round, and nothing else") {
  constexpr int ranks = 2;
  const std::string yaml = sparseloco("local_steps: 3, residual_decay: 0.5", "{name: topk, density: 0.1}");
  std::vector<double> lost, made;
  for (Iteration rounds = 1; rounds <= 4; ++rounds) {
    const Account now = account(yaml, ranks, 3 * rounds);
    lost.resize(now.x.size());
    made.resize(now.x.size());
    std::vector<float> g(now.x.size());
    for (int r = 0; r < ranks; ++r)
      for (Iteration k = 3 * (rounds - 1); k < 3 * rounds; ++k) {
        whole_numbers(r, k, 1, g);
        for (std::size_t e = 0; e < made.size(); ++e) made[e] += static_cast<double>(g[e]);
      }
    double most = 0.0;
    for (std::size_t e = 0; e < made.size(); ++e) {
      CHECK(now.owed[e] - ranks * now.x[e] + lost[e] == made[e]);
      most = std::max(most, std::abs(lost[e]));
      lost[e] += 0.5 * now.owed[e];
    }
    CHECK((most > 0.0) == (rounds > 1));
  }
}

TEST_CASE("the deployed mean is over the ranks that have sent a value") {
  constexpr std::size_t kept = 37;
  for (const int ranks : {2, 4}) {
    const Account sent = account(sparseloco("local_steps: 3, mean: senders", "{name: topk, density: 0.1}"), ranks, 3);
    const std::size_t n = sent.x.size();
    std::vector<double> sum(n), senders(n);
    for (int r = 0; r < ranks; ++r) {
      const std::vector<double> made = made_by(r, n);
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order,
                               [&](std::size_t a, std::size_t b) { return std::abs(made[a]) > std::abs(made[b]); });
      for (std::size_t i = 0; i < kept; ++i) {
        sum[order[i]] += made[order[i]];
        senders[order[i]] += made[order[i]] != 0.0 ? 1.0 : 0.0;
      }
    }
    CHECK(std::ranges::count(senders, 1.0) > 0);
    CHECK(std::ranges::count_if(senders, [](double count) { return count > 1.0; }) > 0);
    for (std::size_t e = 0; e < n; ++e)
      CHECK(sent.x[e] == doctest::Approx(senders[e] > 0.0 ? -sum[e] / senders[e] : 0.0).epsilon(1e-6));
  }
}

TEST_CASE("settings of the mean and of the residual are checked") {
  CHECK(said_of(alone(sparseloco("residual_decay: 0", "{name: topk}"))).find("residual_decay") != std::string::npos);
  CHECK(said_of(alone(sparseloco("mean: some", "{name: topk}"))).find("exchange.mean") != std::string::npos);
}

}  // namespace
}  // namespace hearsay::sparseloco_test

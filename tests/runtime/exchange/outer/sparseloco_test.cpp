// The laws of SparseLoCo: it is DiLoCo where everything travels, and owes what it has not sent.
#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay {
namespace {

using namespace test;

std::string sparseloco(const std::string& keys, const std::string& selector) {
  return everybody + "exchange: {name: sparseloco, " + keys + "}\nsparsify: {selector: " + selector + "}\n";
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

/// x after some rounds of three steps, and Σ over ranks of what they owe.
struct Account {
  std::vector<double> x, owed;
  std::uint64_t payload_bytes = 0;
};
Account account(const std::string& yaml, int ranks, Iteration iterations) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(ranks);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  Account result{.x = std::vector<double>(layout.size()), .owed = std::vector<double>(layout.size())};
  std::mutex one_at_a_time;
  run_local_ranks(job, [&](LocalRank& rank) {
    const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
    for (Iteration k = 0; k < iterations; ++k) {
      rank.member.start(k);
      whole_numbers(rank.rank(), k, 1, g);
      rank.member.finish(k);
      for (std::size_t e = 0; e < x.size(); ++e) x[e] -= g[e];
      rank.member.stepped(k);
    }
    std::vector<float> residual(x.size());
    rank.member.exchange().add_residual(residual);
    const std::lock_guard lock(one_at_a_time);
    for (std::size_t e = 0; e < x.size(); ++e) {
      if (rank.rank() == 0) result.x[e] = static_cast<double>(x[e]);
      result.owed[e] += static_cast<double>(residual[e]);
    }
    result.payload_bytes += rank.ledger.totals().payload_bytes;
  });
  return result;
}

// Whole numbers, and means over 2 or 4 ranks: exact.
TEST_CASE("what is applied and what is owed are together what the local steps have made, exactly") {
  constexpr Iteration iterations = 15;
  for (const int ranks : {1, 2, 4}) {
    for (const std::string selector : {"{name: topk, density: 0.1}", "{name: topk, density: 0.3, scope: per_segment}",
                                       "{name: random, density: 0.2}"}) {
      CAPTURE(ranks);
      CAPTURE(selector);
      const Account sparse = account(sparseloco("local_steps: 3", selector), ranks, iterations);
      std::vector<double> made(sparse.x.size());
      std::vector<float> g(made.size());
      for (int r = 0; r < ranks; ++r)
        for (Iteration k = 0; k < iterations; ++k) {
          whole_numbers(r, k, 1, g);
          for (std::size_t e = 0; e < made.size(); ++e) made[e] += static_cast<double>(g[e]);
        }
      double owed = 0.0;
      for (std::size_t e = 0; e < made.size(); ++e) {
        CHECK(sparse.owed[e] - ranks * sparse.x[e] == made[e]);
        owed += std::abs(sparse.owed[e]);
      }
      CHECK(owed > 0.0);
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

}  // namespace
}  // namespace hearsay

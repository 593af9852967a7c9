// Outer differences of which only what is news travels: sparseloco's and diloco's sums in integers of one step.
#include <cmath>

#include "base/error.hpp"
#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::coded_sum_test {
namespace {

using namespace test;

constexpr const char* plain_outer = "outer: {learning_rate: 1, momentum: 0}";

std::string coded(const std::string& exchange, const std::string& rule) {
  return everybody + "exchange: " + exchange + "\nsparsify: {quantiser: {name: dead_zone, " + rule + "}}\n";
}

// Multiples of the number of ranks, and so are steps: a mean is a whole number, and everything is exact.
TEST_CASE("what is applied and what is owed are together what the local steps have made, exactly") {
  constexpr Iteration iterations = 15;
  for (const std::string name : {"{name: sparseloco, local_steps: 3", "{name: diloco, local_steps: 3",
                                 "{name: diloco, local_steps: 3, fragments: 3"}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      const std::string step = "step: " + std::to_string(4 * ranks);
      for (const std::string& rule : {step, std::string("bits_per_value: 0.3"), std::string("bits_per_value: 0.9")}) {
        if (ranks == 3 && rule != step) continue;
        CAPTURE(name);
        CAPTURE(rule);
        CAPTURE(ranks);
        const Account sent = account(coded(name + ", " + plain_outer + "}", rule), ranks, iterations, ranks);
        const std::vector<double> made = made_by_all(ranks, iterations, ranks, sent.x.size());
        double owed = 0.0, moved = 0.0;
        for (std::size_t e = 0; e < made.size(); ++e) {
          CHECK(sent.owed[e] - sent.x_of_all[e] == made[e]);
          owed += std::abs(sent.owed[e]);
          moved += std::abs(sent.x[e]);
        }
        CHECK(owed > 0.0);
        CHECK(moved > 0.0);
      }
    }
  }
}

// Differences are multiples of 1/8, and of no more than 4.
TEST_CASE("where the step divides all differences, coded diloco is diloco, bit for bit") {
  for (const std::string keys : {"", ", fragments: 4", ", fragments: 2, delay_steps: 1", ", delay_steps: 3"}) {
    for (const int ranks : {1, 2, 4, 8}) {
      CAPTURE(keys);
      CAPTURE(ranks);
      const std::string exchange = "{name: diloco, local_steps: 4" + keys + ", " + plain_outer + "}";
      const JobOutcome dense = train_given(everybody + "exchange: " + exchange + "\n", ranks, 21);
      CHECK(train_given(coded(exchange, "step: 0.125"), ranks, 21).hashes() == dense.hashes());
    }
  }
}

// Within the first round: what local steps have made after a sum has left is lost when it comes back (blend 0).
TEST_CASE("a fragment that is under way counts once: in the models, and not in what is owed") {
  const Layout layout = reference::small_layout();
  for (const auto& [keys, before, under_way] : {std::tuple{"local_steps: 4, delay_steps: 2", 3, 5},
                                                {"local_steps: 3, delay_steps: 2", 2, 4},
                                                {"local_steps: 4, fragments: 2, delay_steps: 1", 1, 2}}) {
    for (const int ranks : {1, 2, 4, 8}) {
      const std::string yaml =
          coded("{name: diloco, " + std::string(keys) + ", " + plain_outer + "}", "bits_per_value: 0.3");
      for (const Iteration iterations : {before, under_way}) {
        CAPTURE(yaml);
        CAPTURE(ranks);
        CAPTURE(iterations);
        const Account sent = account(yaml, ranks, iterations, ranks);
        const std::vector<double> made = made_by_all(ranks, iterations, ranks, layout.size());
        for (std::size_t e = 0; e < made.size(); ++e) REQUIRE(sent.owed[e] - sent.x_of_all[e] == made[e]);
      }
    }
  }
}

TEST_CASE("what is owed while a fragment is under way is saved, and is the same when it is loaded") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  constexpr int ranks = 3;
  const Plan plan(coded("{name: diloco, local_steps: 4, delay_steps: 2}", "bits_per_value: 0.3"));
  const Topology topology = plan.topology(ranks);
  std::vector<RawBytes> saved(ranks);
  std::vector<std::vector<float>> owed(ranks, std::vector<float>(layout.size())), loaded = owed;
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  run_local_ranks(job, [&](LocalRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
    for (Iteration k = 0; k < 9; ++k) {
      rank.member.start(k);
      whole_numbers(rank.rank(), k, 1, g);
      rank.member.finish(k);
      for (std::size_t e = 0; e < x.size(); ++e) x[e] -= g[e];
      rank.member.stepped(k);
    }
    Archive archive = Archive::saving(saved[me]);
    rank.member.state(archive);
    add_residual(rank.member.exchange(), owed[me]);
  });
  run_local_ranks(job, [&](LocalRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    Archive archive = Archive::loading(saved[me], "the checkpoint");
    rank.member.state(archive);
    add_residual(rank.member.exchange(), loaded[me]);
  });
  CHECK(loaded == owed);
}

/// What is said of a job all of whose gradients are `value` in the segment, until it ends.
std::string said_of_huge(const std::string& yaml, float value) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(2);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  try {
    run_local_ranks(job, [&](LocalRank& rank) {
      for (Iteration k = 0; k < 20; ++k) {
        const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
        rank.member.start(k);
        std::ranges::fill(g, 0.0F);
        g[layout[1].offset] = value;
        rank.member.finish(k);
        for (std::size_t e = 0; e < x.size(); ++e) x[e] -= 0.5F * g[e];
        rank.member.stepped(k);
      }
    });
  } catch (const DivergenceError& error) {
    return error.what();
  }
  return {};
}

// Each gradient and each difference is finite; integers of a small step leave nearly all of them in the residual, or in
// the momentum, until that is not.
TEST_CASE("a residual that is not finite any more is told with its segment, rank and iteration") {
  const std::string name = "parameter '" + reference::small_layout()[1].name + "'";
  for (const std::string exchange : {"{name: diloco, local_steps: 2", "{name: demo, decay: 1", "{name: topk",
                                     "{name: gtopk", "{name: sparseloco, local_steps: 2"}) {
    const std::string said = said_of_huge(coded(exchange + "}", "step: 1"), 1e38F);
    CAPTURE(exchange);
    CAPTURE(said);
    CHECK(said.find(name) != std::string::npos);
    CHECK(said.find("iteration") != std::string::npos);
  }
}

TEST_CASE("all ranks end a round with the same model, and no round has more bytes than the bound") {
  const Layout layout = reference::small_layout();
  for (const std::string name : {"sparseloco", "diloco"}) {
    for (const int ranks : {2, 3, 5, 8}) {
      const std::string yaml = coded("{name: " + name + ", local_steps: 4}", "bits_per_value: 0.5");
      const JobOutcome job = train_given(yaml, ranks, 20);
      for (const RankOutcome& rank : job.ranks) CHECK(rank.hash == job.ranks[0].hash);
      const std::size_t worst = Plan(yaml).exchange().worst_case_bytes(layout, Plan(yaml).topology(ranks));
      CHECK(job.totals().bytes() <= 5 * worst);
      CHECK(job.totals().bytes() > 0);
    }
  }
}

TEST_CASE("diloco with another selection or rounding names the exchange that has it") {
  for (const std::string sparsify : {"{selector: {name: topk}}", "{quantiser: {name: two_bit}}"})
    CHECK(said_of("exchange: {name: diloco}\nsparsify: " + sparsify + "\n").find("{name: sparseloco}") !=
          std::string::npos);
  CHECK(said_of("exchange: {name: noloco}\nsparsify: {quantiser: {name: dead_zone}}\n").find("sparsify") !=
        std::string::npos);
}

}  // namespace
}  // namespace hearsay::coded_sum_test
